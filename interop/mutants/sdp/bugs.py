"""The planted bugs of the SDP endpoint, and the state that only they use.

Each bug is a few lines that depend on bug("name").  The correct endpoint never
reads SHARED.
"""

# name -> (class, how it shows)
BUGS = {
    "credit-leak-resize": ("credits", "each handled ChRcvBuf permanently removes one posted Private Buffer"),
    "credit-reserve": ("credits", "Data messages are also sent with only two credits left: one message too many"),
    "credit-in-flight": ("credits", "messages under way (LSSeq - MSeqAck) are not subtracted from Bufs: too many are sent after a Bufs that crossed them"),
    "credit-late-update": ("credits", "a credit update goes out only if one credit or fewer are left, so a sender that keeps two back stalls"),
    "src-len-16bit": ("size", "the Len of a SrcAvail is taken modulo 65,536"),
    "read-tail-odd": ("size", "the last octet of a Read Zcopy transfer of odd size over 64 KiB becomes zero"),
    "exact-fit": ("size", "a message that fills its receive Private Buffer to the last octet is refused"),
    "resize-early": ("size", "the larger message size is used right after ChRcvBuf, before its ack"),
    "read-carry": ("size", "the TO of a later Read Request of one transfer does not carry from bit 31 into bit 32"),
    "mseq-16bit": ("sequence", "our MSeq has 16 bits: after 65,535 comes 0"),
    "mseqack-8bit": ("sequence", "our MSeqAck has 8 bits: after 255 messages it goes back to 0"),
    "cancel-ack-early": ("sequence", "MSeqAck covers a SrcAvailCancel at once, although RDMA Reads are still In-Process"),
    "sendsm-restart": ("mix", "SendSm after a partial RdmaRdCompl: the part already read is sent again"),
    "cross-drops-second": ("mix", "a SinkAvail that crosses several SrcAvails: only the data of the oldest are sent again"),
    "stale-count": ("mix", "PotentialNonDiscards is not decremented for a stale SinkAvail: later good ones are discarded"),
    "nondiscards-oob": ("mix", "NonDiscards does not count Data messages with OOB data"),
    "oob-pend-twice": ("mix", "OOB_PEND is set again in the message with the OOB octet if an earlier message announced it"),
    "oob-far": ("mix", "OOB_PEND goes out although over 65,535 octets come before the OOB octet"),
    "cancel-sendsm-always": ("mix", "SendSm also answers a SrcAvailCancel that crossed the completion of all SrcAvails"),
    "cancel-forgets-read": ("mix", "SrcAvailCancel during RDMA Reads: the octets read are kept but no RdmaRdCompl reports them, so they come twice"),
    "mode-waiting": ("mode", "data that waited when the mode became Buffered still go out by SrcAvail"),
    "mode-no-ack": ("mode", "after Pipelined to Combined the next mode change does not wait for the acknowledgement"),
    "mode-keeps-sinks": ("mode", "Pipelined to Combined leaves our SinkAvails in place: the next Data message counts as discarding one"),
    "mode-both-ways": ("mode", "a ModeChange of the receive half also changes the send half"),
    "read-early-compl": ("rdma", "RdmaRdCompl goes out with the last Read Request, before the data are here"),
    "write-after-compl": ("rdma", "RdmaWrCompl goes out before the RDMA Write if that has several segments"),
    "read-last-octet": ("rdma", "a Read that starts inside an advertised buffer and ends at its last octet is refused"),
    "close-unsent": ("life", "the peer's DisConn drops data that still wait for credits"),
    "close-before-read": ("life", "DisConn goes out while a SrcAvail is still outstanding"),
    "abort-silent": ("life", "no AbortConn after our DisConn when the peer violates the protocol"),
    "setup-leak": ("life", "after five failed or reset set-ups every further connection is refused"),
    "mode-inherited": ("life", "a new connection starts in the receive mode in which the last one ended"),
    "susp-drops": ("life", "data advertised by SrcAvail when SuspComm arrives are lost at the re-connection"),
    "shared-stags": ("concurrency", "STags are valid in all open connections"),
    "shared-nondiscards": ("concurrency", "all connections share one NonDiscards counter"),
    "split-segment": ("timing", "if a TCP read ends between two segments of one message, the second segment repeats the first octets"),
    "split-response": ("timing", "if a TCP read ends between two segments of a Read Response, the later one is placed from the buffer's start"),
    "batch-credit": ("timing", "if several messages arrive in one TCP read, only the first updates the send credit"),
    "srcavail-16": ("load", "over 16 outstanding SrcAvails, further ones are forgotten although MaxAdverts allows 32"),
    "ord-each": ("load", "every SrcAvail may use the RDMA Read depth alone: together they exceed the peer's LocIRD"),
    "last-credit": ("credits", "at one credit left, messages without payload go out even if they bring the peer no new credits"),
    "update-empty": ("credits", "no credit update if the peer used its credits for empty Data messages only"),
    "ctl-overflow": ("load", "only eight waiting messages without payload are kept: with more the oldest is lost"),
    "desired-late": ("set-up", "ActRcvSz follows DesRemRcvSz, but the first posted Private Buffers have the size before"),
    "bcopy-64k": ("size", "of a payload of 65,536 octets or more only the length modulo 65,536 is delivered"),
    "compl-sum": ("rdma", "a later RdmaRdCompl of one SrcAvail has the sum since the start, not since the last one"),
    "sendsm-slot": ("mix", "each SendSm we get costs one of the peer's MaxAdverts for good; then large buffers wait for ever"),
    "wrcompl-len": ("rdma", "RdmaWrCompl has the size of the SinkAvail, not the octets written, if another SinkAvail waits"),
    "stale-payload": ("mix", "the payload in a stale SinkAvail is lost"),
    "cancel-reads-on": ("rdma", "after a SrcAvailCancel further Reads of an In-Process SrcAvail are issued"),
    "sink-cancel-first": ("rdma", "SinkAvailCancel discards only the oldest waiting SinkAvail"),
    "buffered-early": ("mode", "ModeChange to Buffered Mode goes out although SrcAvails are still outstanding"),
    "potential-reset": ("mode", "PotentialNonDiscards goes back to zero at the change to Pipelined Mode"),
    "resize-waits": ("size", "while old buffers are left after an increase by ChRcvBuf no new ones are posted"),
    "resize-base": ("size", "DesSz is compared with the size at set-up: an increase after a decrease is acknowledged too early"),
    "oob-overtakes": ("mix", "an OOB octet does not wait for the outstanding SrcAvail before it"),
    "oob-coalesce": ("mix", "one OOB_PEND for all OOB octets that wait at the same time"),
    "abort-late": ("life", "AbortConn after the peer's DisConn is ignored"),
    "halfclose-update": ("life", "no gratuitous credit updates after our DisConn"),
    "shared-bounce": ("concurrency", "all connections read into the same buffer"),
}

# The third set, listed by --list-bugs --role new.
NEW = {
    "bufs-held": ("credits", "Bufs also counts the Private Buffers whose data still wait for the ULP"),
    "ctl-burst": ("credits", "if several messages without payload wait, the credits are checked only before the first"),
    "tail-octet": ("size", "one octet that would be left for a last Data message goes with the one before, which is then one octet too large"),
    "resize-recycle": ("size", "buffers posted again while old ones are left after an increase by ChRcvBuf keep the old size"),
    "resize-sinkavail": ("size", "after ChRcvBufAck the size at set-up still decides whether a SinkAvail may be sent"),
    "cancel-ack-stuck": ("sequence", "MSeqAck stays below a SrcAvailCancel for good if the Reads In-Process completed all"),
    "susp-mseq": ("sequence", "after the re-connection of SuspComm our MSeq goes on where it was instead of at 0"),
    "cancel-cross-sendsm": ("mix", "a SendSm that crossed our SrcAvailCancel counts as its answer: all SrcAvails are sent by Data messages"),
    "oob-ctl-lost": ("mix", "OOB_PEND is lost if the next message is not a Data message"),
    "trans-overtakes": ("mix", "small data go out in our SinkAvail although a SrcAvail before them is outstanding"),
    "potential-trans": ("mix", "PotentialNonDiscards does not count the payload of our SinkAvails"),
    "cross-reads": ("mix", "a SrcAvail that crossed our SinkAvail is not ignored but read"),
    "sendsm-overlap": ("mix", "after our SendSm the next SrcAvail is read and completed before the data of the first are here"),
    "sink-cancel-invalid": ("rdma", "SinkAvailCancel invalidates our STags at once, before it is Processed"),
    "sink-one-buffer": ("rdma", "a second outstanding SinkAvail of ours lies in the memory of the first"),
    "mode-src-over": ("mode", "after Pipelined to Combined a SrcAvail goes out although those of Pipelined Mode are outstanding"),
    "halfclose-timer": ("timing", "two seconds after our DisConn the connection is aborted although the peer still sends"),
    "resize-shared": ("concurrency", "after a ChRcvBuf to a smaller size the first buffers of later connections have it, too"),
    "ird-half": ("load", "only half of the inbound RDMA Reads that LocIRD allows are possible at a time"),
    "adverts-own": ("set-up", "our own MaxAdverts limits our advertisements, not the peer's"),
}
BUGS.update(NEW)

ACTIVE = None

SHARED = {"regions": {}, "refused": 0, "rx_mode": None, "nondiscards": 0, "bounce": bytearray(),
          "rcvsz": None}


def bug(name):
    """True if the bug of this name is switched on."""
    return ACTIVE == name


def activate(name):
    global ACTIVE
    ACTIVE = name
