#!/usr/bin/env python3
"""Serves each connection in its own process: a target for `weft test`.

If a connection hangs, other connections do not have to wait for it.

  serve_each.py --port 0 [options of sdp_peer.py] APP
"""
import os
import signal
import socket
import sys

import sdp_peer as peer


def main():
    cfg = peer.arguments(["serve", *sys.argv[1:]])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.create_server(("127.0.0.1", cfg.port), backlog=64)
    print(f"listening on {server.getsockname()[1]}", flush=True)
    while True:
        sock = server.accept()[0]
        if os.fork() == 0:
            server.close()
            report = peer.Report(lambda text: print(text, flush=True))
            app = peer.APPS[cfg.app[0]](cfg, *cfg.app[1:])
            conn = peer.connection(cfg, report, False, None)
            peer.run(cfg, conn, app, lambda: conn.accept(sock))
            os._exit(0)
        sock.close()


if __name__ == "__main__":
    main()
