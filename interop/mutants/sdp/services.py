"""What runs on top of an SDP connection: echo, sink and source."""

PATTERN = bytes(i % 251 for i in range(251 * 300))
BACKLOG = 1 << 20               # echo stops to receive when so much waits to be sent


def pattern(start, count):
    """Octets start ... start+count-1 of the pattern."""
    start %= 251
    if start + count <= len(PATTERN):
        return PATTERN[start:start + count]
    return (PATTERN * ((start + count) // len(PATTERN) + 1))[start:start + count]


class Service:
    """Base: counts what it receives and compares it with the pattern."""

    def __init__(self, opts, conn):
        self.opts, self.conn = opts, conn
        self.sent = self.received = 0
        self.good = True

    def start(self):
        pass

    def ready(self):
        """True if the service takes more data now."""
        return True

    def fill(self):
        pass

    def on_data(self, data, oob):
        self.good = self.good and data == pattern(self.received, len(data))
        self.received += len(data)

    def on_eof(self):
        self.conn.tx.close()

    def summary(self):
        return "sent %d, received %d, pattern %s" % (
            self.sent, self.received, "ok" if self.good else "BROKEN")


class Echo(Service):
    """Each piece received is one ULP buffer to send; OOB octets stay OOB."""

    def ready(self):
        return self.conn.tx.backlog < BACKLOG

    def on_data(self, data, oob):
        super().on_data(data, oob)
        self.sent += len(data)
        self.conn.tx.write(data, oob)


class Source(Service):
    """Sends the pattern in ULP buffers of --chunk octets."""

    def fill(self):
        tx = self.conn.tx
        while not tx.closing and tx.backlog < 8 * self.opts.chunk:
            count = self.opts.chunk
            if self.opts.count is not None:
                count = min(count, self.opts.count - self.sent)
            if not count:
                tx.close()
                return
            tx.write(pattern(self.sent, count))
            self.sent += count

    def on_eof(self):
        if self.opts.count is None:
            self.conn.tx.close()


def make(opts, conn):
    return {"echo": Echo, "sink": Service, "source": Source}[opts.service](opts, conn)
