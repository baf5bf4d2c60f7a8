"""Starts and ends that several scenes share."""


def begin(s, port=7174, request=None, reply=None, **how):
    """A connection with finished MPA start-up."""
    c = s.connect(port, **how)
    c.open()
    c.after(150)
    s.startup = c.mpa(request, reply)
    c.after(80)
    return c


def end(c, side, gap=60):
    """The orderly close after a Terminate: `side` sends the first FIN."""
    return c.close(side, gap=gap)
