/* ulptool - a program for the guests, linked statically.
 *   ulptool mount SRC DIR TYPE OPTIONS          mount(2) with these options
 *   ulptool umount DIR
 *   ulptool fill SEED BYTES FILE                write a pseudo-random pattern, see pat()
 *   ulptool pwrite FILE OFF LEN SEED [direct]   one pwrite(2) of the pattern
 *   ulptool pread FILE OFF LEN [direct]         one pread(2)
 *   ulptool setxattr FILE NAME LEN SEED         one setxattr(2) of the pattern
 *   ulptool getxattr FILE NAME                  one getxattr(2) of at most 64 KiB
 * The last four print one line: operation, file, offset or name, length, result, and the hash (FNV-1a,
 * 64 bits) of the bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>
#include <unistd.h>

/* the pattern of SEED: xorshift64*, 8 bytes in each step, little endian */
static void pat(uint64_t seed, unsigned char *p, size_t n)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
    for (size_t i = 0; i < n; i++) {
        if (i % 8 == 0) { x ^= x >> 12; x ^= x << 25; x ^= x >> 27; }
        p[i] = (unsigned char)((x * 0x2545f4914f6cdd1dull) >> (8 * (i % 8)));
    }
}
static uint64_t fnv(const unsigned char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325ull;
    while (n--) { h ^= *p++; h *= 0x100000001b3ull; }
    return h;
}
int main(int c, char **v)
{
    if (c >= 6 && !strcmp(v[1], "mount")) {
        if (mount(v[2], v[3], v[4], 0, v[5])) { printf("mount: %s\n", strerror(errno)); return 1; }
        return 0;
    }
    if (c >= 3 && !strcmp(v[1], "umount")) {
        if (umount2(v[2], 0)) { printf("umount: %s\n", strerror(errno)); return 1; }
        return 0;
    }
    if (c >= 5 && !strcmp(v[1], "fill")) {
        size_t n = strtoull(v[3], 0, 0);
        unsigned char *b = malloc(n + 8);
        pat(strtoull(v[2], 0, 0), b, n);
        int f = open(v[4], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (f < 0 || write(f, b, n) != (ssize_t)n) { perror(v[4]); return 1; }
        close(f);
        printf("fill %s %zu fnv %016llx\n", v[4], n, (unsigned long long)fnv(b, n));
        return 0;
    }
    if (c >= 6 && !strcmp(v[1], "setxattr")) {
        size_t n = strtoull(v[4], 0, 0);
        unsigned char *b = malloc(n + 8);
        if (!b) return 1;
        pat(strtoull(v[5], 0, 0), b, n);
        if (setxattr(v[2], v[3], b, n, 0)) { printf("setxattr %s %s len %zu: %s\n", v[2], v[3], n, strerror(errno)); return 1; }
        printf("setxattr %s %s len %zu fnv %016llx\n", v[2], v[3], n, (unsigned long long)fnv(b, n));
        return 0;
    }
    if (c >= 4 && !strcmp(v[1], "getxattr")) {
        static unsigned char b[65536];
        ssize_t r = getxattr(v[2], v[3], b, sizeof b);
        if (r < 0) { printf("getxattr %s %s: %s\n", v[2], v[3], strerror(errno)); return 1; }
        printf("getxattr %s %s -> %zd fnv %016llx\n", v[2], v[3], r, (unsigned long long)fnv(b, r));
        return 0;
    }
    int wr = c >= 6 && !strcmp(v[1], "pwrite"), rd = c >= 5 && !strcmp(v[1], "pread");
    if (wr || rd) {
        size_t n = strtoull(v[4], 0, 0);
        off_t o = strtoull(v[3], 0, 0);
        int direct = !strcmp(v[c - 1], "direct");
        unsigned char *b;
        if (posix_memalign((void **)&b, 4096, n + 4096)) return 1;
        if (wr) pat(strtoull(v[5], 0, 0), b, n);
        int f = open(v[2], (wr ? O_RDWR | O_CREAT : O_RDONLY) | (direct ? O_DIRECT : 0), 0644);
        if (f < 0) { printf("%s %s: open: %s\n", v[1], v[2], strerror(errno)); return 1; }
        ssize_t r = wr ? pwrite(f, b, n, o) : pread(f, b, n, o);
        if (r < 0) { printf("%s %s off %lld len %zu: %s\n", v[1], v[2], (long long)o, n, strerror(errno)); return 1; }
        printf("%s %s off %lld len %zu -> %zd fnv %016llx\n", v[1], v[2], (long long)o, n, r, (unsigned long long)fnv(b, r));
        close(f);
        return 0;
    }
    fprintf(stderr, "ulptool: the comment at the start of ulptool.c describes the usage\n");
    return 2;
}
