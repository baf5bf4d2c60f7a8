/* siwprobe - a small librdmacm/libibverbs peer for the siw lab.
 *
 * Unlike the stock tools (rping, perftest, rdma_client...), it can choose the MPA
 * private data, IRD and ORD; reject with private data; violate rules on purpose (bad
 * STag, out of bounds, no permission, no receive buffer, receive buffer too small);
 * send with Solicited Event or with Invalidate; send messages of length zero; and exit
 * without closing the connection.
 *
 *   siwprobe server -p PORT [-n CONNS] [-A ACCESS] [-m MRLEN] [-r NRECV]
 *            [-R RECVSIZE] [-d TEXT] [-x] [-e] [-i IRD] [-o ORD] [-t SECONDS]
 *            [-w OPS]
 *   siwprobe client -a ADDR -p PORT [-d TEXT] [-i IRD] [-o ORD] [-r NRECV]
 *            [-R RECVSIZE] [-m MRLEN] [-A ACCESS] [-g] OP...
 *
 * server: -A any of l (local write) r (remote read) w (remote write); default lrw
 *         -x rejects every request, with TEXT as the private data of the reply
 *         -e echoes every received Send back
 *         accepts with 24 bytes of private data, then TEXT if given:
 *             "SIWP" | STag be32 | TO be64 | length be32 | access be32
 *         The region starts filled with pattern byte (i*7+3)&255.
 *         -w OPS: comma-separated OPs that the server runs after it is connected
 * client: -g sends the same 24 bytes in front of TEXT, so that the server's OPs
 *         have a region too
 * OP (sizes in bytes; OFF is an offset into the peer's region, modulo 2^64; XOR
 * is XORed with its STag):
 *   send:N sendse:N sendinv:N[:0:XOR] sendseinv:N[:0:XOR]
 *   write:N[:OFF[:XOR]] read:N[:OFF[:XOR]]
 *   writebadkey:N writeoob:N writewrap:N readbadkey:N readoob:N readwrap:N
 *   sgwrite:N sgsend:N   (three scatter/gather elements)
 *   sendinvz:N  Send with Invalidate of STag 0 (there is none)
 *   burst:OP:N:COUNT   post COUNT of send/write/read back to back
 *   recv   wait for one incoming Send      sleep:MS   abort (exit at once)
 *   disc   rdma_disconnect      end[:SECONDS]   wait for the peer to end the connection (20)
 * The payload of send/write is pattern byte (i*13+5)&255.
 * Exit status: 0 all went well, 3 connection rejected/failed, 4 a work request
 * completed in error, 1 anything else.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIE(...) do { fprintf(stderr, "siwprobe: " __VA_ARGS__); \
	fprintf(stderr, " (%s)\n", strerror(errno)); exit(1); } while (0)

struct pinfo { char magic[4]; uint32_t stag; uint64_t to; uint32_t len, acc; } __attribute__((packed));

/* work request ids: the id of a receive or of an echo is this number plus the slot of its buffer */
enum { RECEIVE = 1000, ECHO = 1000000, COPY = 2000000 };

static struct rdma_event_channel *ch;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr_tgt, *mr_src, *mr_rcv, *mr_ech;
static uint8_t *tgt, *src, *rcv, *ech, *ech_used;
static size_t mrlen = 1 << 20, rsize = 65536;
static int nrecv = 16, ird = 16, ord = 16, echo, tmo = 60;
static unsigned acc = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
static uint32_t rstag; static uint64_t rto; static uint32_t rlen;
static int recvd, recv_taken, closed, bad;

static uint64_t fnv(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;
	while (n--) { h ^= *p++; h *= 0x100000001b3ull; }
	return h;
}

static void post_recv(uint64_t slot)
{
	struct ibv_sge s = { (uintptr_t)(rcv + slot * rsize), rsize, mr_rcv->lkey };
	struct ibv_recv_wr w = { .wr_id = RECEIVE + slot, .sg_list = &s, .num_sge = 1 }, *b;
	if (ibv_post_recv(id->qp, &w, &b)) DIE("post_recv");
}

/* number of buffers for echoes that are not completed yet */
static int nechoes(void) { return 4 * nrecv; }

/* Copies a received message, and returns the number of its copy; -1 if all copies are in use. The
 * message's own buffer can then be posted again before the echo is sent: a peer that waits for the
 * echo never finds the receive queue empty. */
static int copy_echo(uint64_t slot, uint32_t len)
{
	for (int i = 0; i < nechoes(); i++) {
		if (ech_used[i]) continue;
		ech_used[i] = 1;
		memcpy(ech + (size_t)i * rsize, rcv + slot * rsize, len);
		return i;
	}
	return -1;
}

static void setup(struct rdma_cm_id *c)
{
	struct ibv_qp_init_attr q = { .qp_type = IBV_QPT_RC, .sq_sig_all = 0,
		.cap = { .max_send_wr = 512, .max_recv_wr = nrecv + 1, .max_send_sge = 4, .max_recv_sge = 1 } };
	size_t i;
	id = c;
	pd = ibv_alloc_pd(c->verbs);
	cq = ibv_create_cq(c->verbs, 2048, NULL, NULL, 0);
	if (!pd || !cq) DIE("pd/cq");
	q.send_cq = q.recv_cq = cq;
	if (rdma_create_qp(c, pd, &q)) DIE("create_qp");
	tgt = aligned_alloc(4096, (mrlen + 4095) & ~4095ul);
	src = aligned_alloc(4096, (mrlen + 4095) & ~4095ul);
	rcv = aligned_alloc(4096, ((nrecv + 1) * rsize + 4095) & ~4095ul);
	for (i = 0; i < mrlen; i++) { tgt[i] = i * 7 + 3; src[i] = i * 13 + 5; }
	mr_tgt = ibv_reg_mr(pd, tgt, mrlen, acc);
	mr_src = ibv_reg_mr(pd, src, mrlen, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	mr_rcv = ibv_reg_mr(pd, rcv, (nrecv + 1) * rsize, IBV_ACCESS_LOCAL_WRITE);
	if (!mr_tgt || !mr_src || !mr_rcv) DIE("reg_mr");
	if (echo) {
		ech = aligned_alloc(4096, ((size_t)nechoes() * rsize + 4095) & ~4095ul);
		ech_used = calloc(nechoes(), 1);
		mr_ech = ibv_reg_mr(pd, ech, (size_t)nechoes() * rsize, IBV_ACCESS_LOCAL_WRITE);
		if (!ech_used || !mr_ech) DIE("reg_mr");
	}
	for (i = 0; i < (size_t)nrecv; i++) post_recv(i);
}

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }

static void on_event(struct rdma_cm_event *e)
{
	printf("event %s status %d\n", rdma_event_str(e->event), e->status);
	if (e->event == RDMA_CM_EVENT_DISCONNECTED || e->event == RDMA_CM_EVENT_DEVICE_REMOVAL) closed = 1;
}

/* Requests that came while another connection was served: kept, unacknowledged, until its turn. */
static struct rdma_cm_event *waiting[32];
static unsigned nwaiting;

static void dispose(struct rdma_cm_event *e)
{
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST && nwaiting < sizeof waiting / sizeof *waiting) {
		waiting[nwaiting++] = e;
		return;
	}
	on_event(e);
	rdma_ack_cm_event(e);
}

/* waits at most ms milliseconds for the next request; returns NULL if none arrived */
static struct rdma_cm_event *next_request(int ms)
{
	double end;
	for (end = now() + ms / 1000.; !nwaiting;) {
		struct pollfd p = { ch->fd, POLLIN, 0 };
		struct rdma_cm_event *e;
		int left = (end - now()) * 1000;
		if (left < 0 || poll(&p, 1, left) <= 0) return NULL;
		if (rdma_get_cm_event(ch, &e)) DIE("get_cm_event");
		dispose(e);
	}
	struct rdma_cm_event *first = waiting[0];
	memmove(waiting, waiting + 1, --nwaiting * sizeof *waiting);
	return first;
}

static int pump_events(int ms)
{
	struct pollfd p = { ch->fd, POLLIN, 0 };
	struct rdma_cm_event *e;
	if (poll(&p, 1, ms) <= 0) return 0;
	if (rdma_get_cm_event(ch, &e)) return 0;
	dispose(e);
	return 1;
}

static int post(enum ibv_wr_opcode op, unsigned fl, size_t n, uint32_t key, uint64_t addr, int nsge, uint64_t wid)
{
	struct ibv_sge s[3];
	struct ibv_send_wr w = { .wr_id = wid, .opcode = op, .sg_list = s, .num_sge = n ? nsge : 0, .send_flags = fl }, *b;
	size_t cut[4] = { 0, n / 3, n / 2, n };
	if (nsge == 1) { s[0].addr = (uintptr_t)src; s[0].length = n; s[0].lkey = mr_src->lkey; }
	else for (int i = 0; i < 3; i++) {
		s[i].addr = (uintptr_t)src + cut[i]; s[i].length = cut[i + 1] - cut[i]; s[i].lkey = mr_src->lkey; }
	/* libsiw takes the STag to invalidate from wr.rdma.rkey, not invalidate_rkey */
	w.wr.rdma.rkey = key;
	if (op == IBV_WR_SEND_WITH_INV) w.invalidate_rkey = key;
	else w.wr.rdma.remote_addr = addr;
	return ibv_post_send(id->qp, &w, &b);
}

/* polls completions; returns the number of completions on the send side */
static int poll_cq(int verbose)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc), sends = 0;
	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id >= ECHO) {
			/* a copy is free again; without a copy, the next message may use the buffer only now */
			if (wc[i].wr_id >= COPY) ech_used[wc[i].wr_id - COPY] = 0;
			else if (wc[i].status == IBV_WC_SUCCESS && !closed) post_recv(wc[i].wr_id - ECHO);
		} else if (wc[i].wr_id >= RECEIVE) {
			uint64_t slot = wc[i].wr_id - RECEIVE;
			if (wc[i].status == IBV_WC_WR_FLUSH_ERR) continue;
			printf("recv len %u status %s flags %#x inv %#x fnv %016llx\n", wc[i].status ? 0 : wc[i].byte_len,
				ibv_wc_status_str(wc[i].status), wc[i].wc_flags,
				wc[i].wc_flags & IBV_WC_WITH_INV ? wc[i].invalidated_rkey : 0,
				(unsigned long long)fnv(rcv + slot * rsize, wc[i].status ? 0 : wc[i].byte_len));
			if (wc[i].status) { bad = 1; continue; }
			recvd++;
			if (echo && !closed) {
				int copy = copy_echo(slot, wc[i].byte_len);
				struct ibv_sge s = { (uintptr_t)(rcv + slot * rsize), wc[i].byte_len, mr_rcv->lkey };
				if (copy >= 0) {
					s.addr = (uintptr_t)(ech + (size_t)copy * rsize);
					s.lkey = mr_ech->lkey;
					post_recv(slot);
				}
				struct ibv_send_wr w = { .wr_id = copy >= 0 ? COPY + (uint64_t)copy : ECHO + slot, .opcode = IBV_WR_SEND, .sg_list = &s,
					.num_sge = wc[i].byte_len ? 1 : 0, .send_flags = IBV_SEND_SIGNALED }, *b;
				if (!ibv_post_send(id->qp, &w, &b)) continue;
				if (copy >= 0) { ech_used[copy] = 0; continue; }
			}
			if (!closed) post_recv(slot);
		} else {
			sends++;
			if (wc[i].status) { bad = 1; printf("wr %llu completed: %s (vendor %#x)\n",
				(unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status), wc[i].vendor_err); }
			else if (verbose) printf("wr %llu completed ok, opcode %d\n", (unsigned long long)wc[i].wr_id, wc[i].opcode);
		}
	}
	return sends;
}

static int wait_sends(int want)
{
	double t = now();
	int got = 0;
	while (got < want && now() - t < 60) {
		got += poll_cq(want == 1);
		if (got < want) { pump_events(1); if (bad) { usleep(200000); poll_cq(1); return -1; } }
		if (closed && got < want) { usleep(100000); got += poll_cq(1); if (got < want) return -1; }
	}
	return got >= want && !bad ? 0 : -1;
}

static int do_op(char *o)
{
	char name[32]; unsigned long n = 0, a = 0, b = 0;
	int rc = 0;
	unsigned S = IBV_SEND_SIGNALED;
	if (!strncmp(o, "burst:", 6)) {
		char which[16]; unsigned long cnt;
		if (sscanf(o + 6, "%15[a-z]:%lu:%lu", which, &n, &cnt) != 3) DIE("bad op %s", o);
		enum ibv_wr_opcode op = !strcmp(which, "send") ? IBV_WR_SEND : !strcmp(which, "write") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
		printf("op burst %s n=%lu count=%lu\n", which, n, cnt);
		unsigned long done = 0;
		while (done < cnt) {
			unsigned long k = cnt - done > 64 ? 64 : cnt - done;
			for (unsigned long i = 0; i < k; i++)
				if ((rc = post(op, S, n, rstag, rto, 1, 2))) { printf("post failed: %s\n", strerror(rc)); return -1; }
			if (wait_sends(k)) return -1;
			done += k;
		}
		return 0;
	}
	if (sscanf(o, "%31[a-z]:%lu:%lu:%lu", name, &n, &a, &b) < 1) DIE("bad op %s", o);
	printf("op %s n=%lu off=%lu\n", name, n, a);
	fflush(stdout);
	if (n > mrlen && strcmp(name, "sleep") && strcmp(name, "end")) DIE("op size beyond -m");
	if (!strcmp(name, "sleep")) { double t = now(); while ((now() - t) * 1000 < n) { poll_cq(0); pump_events(5); } return 0; }
	if (!strcmp(name, "end")) { double t = now(); while (!closed && now() - t < (n ? n : 20)) { poll_cq(1); pump_events(5); } poll_cq(1); return closed ? 0 : -1; }
	if (!strcmp(name, "abort")) { fflush(stdout); _exit(0); }
	if (!strcmp(name, "disc")) { rdma_disconnect(id); return 0; }
	if (!strcmp(name, "recv")) {
		double t = now();
		while (recvd <= recv_taken && now() - t < 20 && !bad && !closed) { poll_cq(0); pump_events(1); }
		if (recvd > recv_taken) { recv_taken++; return 0; }
		return -1;
	}
	if (!strcmp(name, "send")) rc = post(IBV_WR_SEND, S, n, 0, 0, 1, 1);
	else if (!strcmp(name, "sgsend")) rc = post(IBV_WR_SEND, S, n, 0, 0, 3, 1);
	else if (!strcmp(name, "sendse")) rc = post(IBV_WR_SEND, S | IBV_SEND_SOLICITED, n, 0, 0, 1, 1);
	else if (!strcmp(name, "sendinv")) rc = post(IBV_WR_SEND_WITH_INV, S, n, rstag ^ b, 0, 1, 1);
	else if (!strcmp(name, "sendseinv")) rc = post(IBV_WR_SEND_WITH_INV, S | IBV_SEND_SOLICITED, n, rstag ^ b, 0, 1, 1);
	else if (!strcmp(name, "sendinvz")) rc = post(IBV_WR_SEND_WITH_INV, S, n, 0, 0, 1, 1);
	else if (!strcmp(name, "write")) rc = post(IBV_WR_RDMA_WRITE, S, n, rstag ^ b, rto + a, 1, 1);
	else if (!strcmp(name, "sgwrite")) rc = post(IBV_WR_RDMA_WRITE, S, n, rstag, rto + a, 3, 1);
	else if (!strcmp(name, "read")) rc = post(IBV_WR_RDMA_READ, S, n, rstag ^ b, rto + a, 1, 1);
	else if (!strcmp(name, "writebadkey")) rc = post(IBV_WR_RDMA_WRITE, S, n, rstag ^ 0x00abcd00, rto, 1, 1);
	else if (!strcmp(name, "writeoob")) rc = post(IBV_WR_RDMA_WRITE, S, n, rstag, rto + rlen - n / 2, 1, 1);
	else if (!strcmp(name, "readbadkey")) rc = post(IBV_WR_RDMA_READ, S, n, rstag ^ 0x00abcd00, rto, 1, 1);
	else if (!strcmp(name, "readoob")) rc = post(IBV_WR_RDMA_READ, S, n, rstag, rto + rlen - n / 2, 1, 1);
	else if (!strcmp(name, "writewrap")) rc = post(IBV_WR_RDMA_WRITE, S, n, rstag, 0 - n / 2, 1, 1);
	else if (!strcmp(name, "readwrap")) rc = post(IBV_WR_RDMA_READ, S, n, rstag, 0 - n / 2, 1, 1);
	else DIE("unknown op %s", name);
	if (rc) { printf("post failed: %s\n", strerror(rc)); return -1; }
	rc = wait_sends(1);
	if (!rc && !strcmp(name, "read"))
		printf("read data fnv %016llx\n", (unsigned long long)fnv(src, n));
	return rc;
}

/* reads the peer's description of its region */
static void learn(const void *pd, unsigned len)
{
	const struct pinfo *pi = pd;
	if (!pd || len < sizeof *pi || memcmp(pi->magic, "SIWP", 4)) return;
	rstag = be32toh(pi->stag); rto = be64toh(pi->to); rlen = be32toh(pi->len);
	printf("peer region stag %#x to %#llx len %u\n", rstag, (unsigned long long)rto, rlen);
}

/* writes the description of our region, then text, to pdata; returns the length */
static size_t describe_region(uint8_t *pdata, size_t capacity, const char *text)
{
	struct pinfo pi = { "SIWP", htobe32(mr_tgt->rkey), htobe64((uintptr_t)tgt), htobe32(mrlen), htobe32(acc) };
	size_t l = strlen(text);
	if (l > capacity - sizeof pi) l = capacity - sizeof pi;
	memcpy(pdata, &pi, sizeof pi); memcpy(pdata + sizeof pi, text, l);
	printf("region stag %#x to %#llx len %zu\n", mr_tgt->rkey, (unsigned long long)(uintptr_t)tgt, mrlen);
	return sizeof pi + l;
}

static struct rdma_cm_event *want(enum rdma_cm_event_type t)
{
	struct rdma_cm_event *e;
	if (rdma_get_cm_event(ch, &e)) DIE("get_cm_event");
	if (e->event != t) {
		const uint8_t *p = e->param.conn.private_data;
		printf("event %s status %d (wanted %s)\n", rdma_event_str(e->event), e->status, rdma_event_str(t));
		if (e->event == RDMA_CM_EVENT_REJECTED && p)
			printf("reject private data (%u bytes): %.*s\n", e->param.conn.private_data_len, e->param.conn.private_data_len, p);
		fflush(stdout);
		exit(3);
	}
	return e;
}

int main(int argc, char **argv)
{
	int c, port = 7174, conns = 1, reject = 0, give = 0;
	char *addr = "0.0.0.0", *text = "", *wops = NULL;
	uint8_t pdata[256];
	struct rdma_conn_param cp = { 0 };
	struct rdma_cm_event *e;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2) { fprintf(stderr, "usage: siwprobe server|client ...\n"); return 1; }
	int server = !strcmp(argv[1], "server");
	argv[1] = argv[0]; argc--; argv++;
	while ((c = getopt(argc, argv, "a:p:n:A:m:r:R:d:xei:o:t:w:g")) != -1)
		switch (c) {
		case 'a': addr = optarg; break;
		case 'p': port = atoi(optarg); break;
		case 'n': conns = atoi(optarg); break;
		case 'A': acc = (strchr(optarg, 'l') ? IBV_ACCESS_LOCAL_WRITE : 0) | (strchr(optarg, 'r') ? IBV_ACCESS_REMOTE_READ : 0) | (strchr(optarg, 'w') ? IBV_ACCESS_REMOTE_WRITE : 0); break;
		case 'm': mrlen = strtoul(optarg, NULL, 0); break;
		case 'r': nrecv = atoi(optarg); break;
		case 'R': rsize = strtoul(optarg, NULL, 0); break;
		case 'd': text = optarg; break;
		case 'x': reject = 1; break;
		case 'e': echo = 1; break;
		case 'g': give = 1; break;
		case 'i': ird = atoi(optarg); break;
		case 'o': ord = atoi(optarg); break;
		case 't': tmo = atoi(optarg); break;
		case 'w': wops = optarg; break;
		default: return 1;
		}
	sa.sin_port = htons(port);
	if (!inet_aton(addr, &sa.sin_addr)) DIE("bad address");
	ch = rdma_create_event_channel();
	if (!ch) DIE("event channel");
	cp.responder_resources = ird; cp.initiator_depth = ord; cp.retry_count = 7;

	if (!server) {
		struct rdma_cm_id *cid;
		if (rdma_create_id(ch, &cid, NULL, RDMA_PS_TCP)) DIE("create_id");
		if (rdma_resolve_addr(cid, NULL, (struct sockaddr *)&sa, 2000)) DIE("resolve_addr");
		rdma_ack_cm_event(want(RDMA_CM_EVENT_ADDR_RESOLVED));
		if (rdma_resolve_route(cid, 2000)) DIE("resolve_route");
		rdma_ack_cm_event(want(RDMA_CM_EVENT_ROUTE_RESOLVED));
		setup(cid);
		cp.private_data = text; cp.private_data_len = strlen(text);
		if (give) { cp.private_data_len = describe_region(pdata, sizeof pdata, text); cp.private_data = pdata; }
		if (rdma_connect(cid, &cp)) DIE("connect");
		e = want(RDMA_CM_EVENT_ESTABLISHED);
		printf("established: peer private data %u bytes, ird %u ord %u\n", e->param.conn.private_data_len,
			e->param.conn.responder_resources, e->param.conn.initiator_depth);
		learn(e->param.conn.private_data, e->param.conn.private_data_len);
		rdma_ack_cm_event(e);
		int failed = 0;
		for (int i = optind; i < argc && !failed; i++) failed = do_op(argv[i]);
		if (!closed) rdma_disconnect(cid);
		double t = now();
		while (!closed && now() - t < 3) pump_events(50);
		poll_cq(1);
		printf("region fnv %016llx, received %d sends\n", (unsigned long long)fnv(tgt, mrlen), recvd);
		return failed || bad ? 4 : 0;
	}

	struct rdma_cm_id *lid;
	if (rdma_create_id(ch, &lid, NULL, RDMA_PS_TCP)) DIE("create_id");
	if (rdma_bind_addr(lid, (struct sockaddr *)&sa)) DIE("bind_addr");
	if (rdma_listen(lid, 8)) DIE("listen");
	printf("listening on %s:%d\n", addr, port);
	int anybad = 0;
	for (int k = 0; k < conns; k++) {
		if (!(e = next_request(tmo * 1000))) { printf("no request within %d s\n", tmo); return 1; }
		struct rdma_cm_id *cid = e->id;
		const uint8_t *q = e->param.conn.private_data;
		printf("connect request: private data %u bytes \"", e->param.conn.private_data_len);
		for (int i = 0; q && i < e->param.conn.private_data_len; i++) putchar(q[i] >= 32 && q[i] < 127 ? q[i] : '.');
		printf("\" responder_resources %u initiator_depth %u\n", e->param.conn.responder_resources, e->param.conn.initiator_depth);
		learn(q, e->param.conn.private_data_len);
		rdma_ack_cm_event(e);
		closed = bad = recvd = recv_taken = 0;
		if (reject) {
			if (rdma_reject(cid, text, strlen(text))) DIE("reject");
			printf("rejected\n");
			rdma_destroy_id(cid);
			continue;
		}
		setup(cid);
		cp.private_data_len = describe_region(pdata, sizeof pdata, text); cp.private_data = pdata;
		if (rdma_accept(cid, &cp)) { printf("accept: %s\n", strerror(errno)); anybad = 1; goto drop; }
		for (;;) {
			if (rdma_get_cm_event(ch, &e)) DIE("get_cm_event");
			if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) break;
			dispose(e);
		}
		on_event(e);
		int est = e->event == RDMA_CM_EVENT_ESTABLISHED;
		rdma_ack_cm_event(e);
		if (est && wops) for (char *s = strtok(wops, ","); s; s = strtok(NULL, ",")) if (do_op(s)) break;
		double t = now();
		while (est && !closed && !bad && now() - t < tmo) { poll_cq(0); pump_events(1); }
		poll_cq(0);
		if (!closed) rdma_disconnect(cid);
		printf("region fnv %016llx, received %d sends\n", (unsigned long long)fnv(tgt, mrlen), recvd);
		anybad |= bad;
drop:
		rdma_destroy_qp(cid);
		ibv_dereg_mr(mr_tgt); ibv_dereg_mr(mr_src); ibv_dereg_mr(mr_rcv);
		if (mr_ech) ibv_dereg_mr(mr_ech);
		mr_ech = NULL;
		ibv_destroy_cq(cq); ibv_dealloc_pd(pd);
		free(tgt); free(src); free(rcv); free(ech); free(ech_used);
		ech = ech_used = NULL;
		rdma_destroy_id(cid);
	}
	return anybad ? 4 : 0;
}
