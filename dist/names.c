/* Part of the static binary: resolve names with the sources that are compiled into it.
 *
 * For other sources in /etc/nsswitch.conf (such as mdns4_minimal, resolve, myhostname or db), the C
 * library loads a module of the host. In a static program, that crashes even if the host has the
 * same C library. */

#include <nss.h>
#include <stddef.h>

__attribute__((constructor)) static void use_built_in_sources(void)
{
    static const char *const files[] = { "ethers", "networks", "protocols", "services" };

    __nss_configure_lookup("hosts", "files dns");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        __nss_configure_lookup(files[i], "files");
}
