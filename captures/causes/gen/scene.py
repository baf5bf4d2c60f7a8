"""A scene: one capture and its entry in `truth.json`."""
import zlib

from .iwarp import Rdma
from .net import Capture, Host, Random

FIRST_DAY = 1_709_629_200  # 2024-03-05 09:00 UTC
SCENES = []


def scene(name, story, at="client", **options):
    """Register a function as a scene. `at` names the capture point: client, server or between."""
    def register(function):
        SCENES.append((name, story, at, options, function))
        return function
    return register


class Scene:
    """The state of one scene. Its numbers depend on nothing but its name."""

    def __init__(self, name, story, at, pcapng=False, vlan=None, v6=False, snap=262144):
        self.random = Random(zlib.crc32(name.encode()))
        start = (FIRST_DAY + self.random.below(10**7)) * 10**9 + self.random.below(10**6) * 1000
        self.capture = Capture(start, vlan, at == "between", snap)
        self.pcapng = pcapng
        low = self.random.between(10, 90)
        net = "2001:db8:%d::" % low if v6 else "10.20.%d." % low
        self.client = self.host(net + "11", "02:00:5e:00:%02x:11" % low)
        self.server = self.host(net + "21", "02:00:5e:00:%02x:21" % low)
        self.entry = {"file": name + (".pcapng" if pcapng else ".pcap"), "story": story,
                      "captured_at": at}

    def host(self, address, ethernet):
        return Host(address, ethernet, self.random)

    def connect(self, port=7174, **how):
        """A connection from the client to `port` of the server. It sends nothing yet."""
        ports = (self.random.between(32768, 60999), port)
        return Rdma(self.capture, self.random, self.client, self.server, ports, **how)

    def stag(self):
        return self.random.between(0x100, 0xFFFFFF) << 8 | self.random.below(256)

    def address(self):
        return 0x7F0000000000 + (self.random.below(1 << 20) << 12)

    def truth(self, connection, *, cause, culprit, first, how, by=None, chain, other=(), must_not,
              also=(), others=()):
        """Record what happened. `culprit` is a side, or "network", "nobody", "unknown".

        `first` and the frames of `chain` and `other` are frame numbers or objects with `frame`.
        `also` has frames that a reader may name instead of `first`.
        """
        role = culprit
        if not isinstance(culprit, str):
            role = "initiator" if culprit is connection.mpa_initiator else "responder"
        sides = connection.mpa_initiator, connection.mpa_initiator.peer
        self.entry.update({
            "connection": {"initiator": sides[0].name, "responder": sides[1].name,
                           "tcp_client": connection.i.name},
            "cause": cause,
            "culprit": role,
            "culprit_address": None if isinstance(culprit, str) else culprit.name,
            "first_frame": number(first),
            "first_frame_also": [number(frame) for frame in also],
            "ended_by": {"how": how, "address": by.name if by else None},
            "chain": [{"frame": number(frame), "text": text} for frame, text in chain],
            "other": [{"frame": number(frame), "text": text} for frame, text in other],
            "must_not": list(must_not),
        })
        if others:
            self.entry["other_connections"] = list(others)


def number(frame):
    if frame is None or isinstance(frame, int):
        return frame
    if isinstance(frame, (list, tuple)):
        frame = frame[0]
    assert frame.frame is not None, "the capture does not have this frame"
    return frame.frame


def schedule(connection, events):
    """Run functions at times in microseconds from now."""
    capture = connection.capture
    base = capture.time
    for offset, function in sorted(events, key=lambda event: event[0]):
        capture.time = max(capture.time, base + int(offset * 1000))
        connection.last = None
        function()
