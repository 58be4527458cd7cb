"""One end of the numbered, resumable conversation between an agent and the server, without I/O.

A `LinkSession` turns messages into frames and frames into messages. It numbers what must not be
lost, keeps it until the peer has acknowledged it, sends it again after a break and drops what
comes twice. Both ends use the same class. It owns no socket and no clock; whoever owns the
connection does this:

- `send(message)` gives the text to write. While there is no connection the text is thrown away:
  the session has kept the message if it is of the kind that is kept.
- `receive(text)` gives the message to act on, or `None` when there is nothing to do.
- `ack_due()` after a batch of received frames gives a bare acknowledgement to write, or `None`.
- After a break the side that answers checks `can_resume(...)` and both call `resume(peer's
  received_seq)` and write the frames it gives. When it cannot be resumed both make a new session.

Every frame carries the number of the last message received, so acknowledgements cost nothing while
there is traffic both ways.
"""

from __future__ import annotations

from collections import deque
from typing import Final, TypeVar, get_args

import msgspec

from hostler.base.errors import Failed, Rejected
from hostler.wire.agent import UNNUMBERED, AgentMessage, LinkMessage, ServerMessage

FRAME_BYTES_MAX: Final = 1024 * 1024
"""Largest frame that is accepted. A hello with 2,000 allocations is about 400 kB."""

UNACKNOWLEDGED_COUNT_MAX: Final = 10_000
"""Most messages kept for sending again; a peer so far behind is better told everything anew."""

UNACKNOWLEDGED_BYTES_MAX: Final = 32 * 1024 * 1024
"""As above, in bytes: room for a hundred streams with a full window each."""

ACK_EVERY_COUNT: Final = 64
"""Messages received without anything to send back before a bare acknowledgement is due."""


class LinkBroken(Rejected):
    """The peer broke the rules of the link; close the connection and begin again."""


class LinkOverflow(Failed):
    """The peer is too far behind to be caught up; close the connection and make a new session."""


class Frame(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one WebSocket text message holds."""

    seq: int = 0
    """Number of the message, from 1 without gaps; 0 for one that is not numbered."""
    ack: int = 0
    """Number of the last message received from the peer."""
    message: msgspec.Raw = msgspec.Raw()
    """The message; empty in a bare acknowledgement."""


_M = TypeVar("_M")

_ENCODER: Final = msgspec.json.Encoder()
_FRAME_DECODER: Final = msgspec.json.Decoder(Frame)
_AGENT_DECODER: Final[msgspec.json.Decoder[AgentMessage]] = msgspec.json.Decoder(AgentMessage)
_SERVER_DECODER: Final[msgspec.json.Decoder[ServerMessage]] = msgspec.json.Decoder(ServerMessage)


class _Kind(msgspec.Struct, frozen=True):
    type: str


_KIND_DECODER: Final = msgspec.json.Decoder(_Kind)
_KINDS: Final = frozenset(str(kind.__struct_config__.tag) for kind in get_args(LinkMessage))


def _decode_frame(text: str | bytes) -> Frame:
    try:
        return _FRAME_DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise LinkBroken("link_bad_frame", "this is not a frame of the link") from error


def _decode_message(body: msgspec.Raw, decoder: msgspec.json.Decoder[_M]) -> _M | None:
    if not bytes(body):
        return None
    try:
        if _KIND_DECODER.decode(body).type not in _KINDS:
            return None
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise LinkBroken("link_bad_message", "this is not a message of the link") from error


class LinkSession:
    """The counters and the memory of one session, seen from one end.

    Attributes:
        session_id: Names the pair of counters; minted by the server.
        received_seq: Number of the last message received.
    """

    def __init__(
        self,
        session_id: str,
        *,
        kept_count_max: int = UNACKNOWLEDGED_COUNT_MAX,
        kept_bytes_max: int = UNACKNOWLEDGED_BYTES_MAX,
    ) -> None:
        self.session_id = session_id
        self.received_seq = 0
        self._sent_seq = 0
        self._told_seq = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._kept_count_max = kept_count_max
        self._kept_bytes_max = kept_bytes_max

    @property
    def unacknowledged_count(self) -> int:
        """How many messages wait for the peer's acknowledgement."""
        return len(self._kept)

    def send(self, message: LinkMessage) -> str:
        """Number and keep the message, and give the text to write.

        Raises:
            LinkOverflow: Too much is kept already; the caller makes a new session.
        """
        body = _ENCODER.encode(message)
        if isinstance(message, UNNUMBERED):
            return self._frame(0, body)
        if (
            len(self._kept) >= self._kept_count_max
            or self._kept_bytes + len(body) > self._kept_bytes_max
        ):
            raise LinkOverflow(
                "link_overflow",
                "the peer has not acknowledged for too long",
                session_id=self.session_id,
                kept_count=len(self._kept),
                kept_bytes=self._kept_bytes,
            )
        self._sent_seq += 1
        self._kept.append((self._sent_seq, body))
        self._kept_bytes += len(body)
        return self._frame(self._sent_seq, body)

    def ack_due(self) -> str | None:
        """Give a bare acknowledgement to write when the peer has waited for one long enough."""
        if self.received_seq - self._told_seq < ACK_EVERY_COUNT:
            return None
        self._told_seq = self.received_seq
        return _ENCODER.encode(Frame(ack=self.received_seq)).decode()

    def receive_from_agent(self, text: str | bytes) -> AgentMessage | None:
        """As the server: take a frame. See `_receive`."""
        return self._receive(text, _AGENT_DECODER)

    def receive_from_server(self, text: str | bytes) -> ServerMessage | None:
        """As the agent: take a frame. See `_receive`."""
        return self._receive(text, _SERVER_DECODER)

    def can_resume(self, session_id: str | None, peer_received_seq: int) -> bool:
        """Say whether this session can go on from where the peer is."""
        oldest = self._kept[0][0] if self._kept else self._sent_seq + 1
        return session_id == self.session_id and oldest - 1 <= peer_received_seq <= self._sent_seq

    def resume(self, peer_received_seq: int) -> list[str]:
        """Forget what the peer has, and give the frames that it has not, to be written in order.

        Raises:
            LinkBroken: The peer claims what was never sent or asks for what is no longer kept.
        """
        if not self.can_resume(self.session_id, peer_received_seq):
            raise LinkBroken(
                "link_cannot_resume",
                "the peer is at a place that this session does not know",
                session_id=self.session_id,
                peer_received_seq=peer_received_seq,
            )
        self._acknowledged(peer_received_seq)
        return [self._frame(seq, body) for seq, body in self._kept]

    def _receive(self, text: str | bytes, decoder: msgspec.json.Decoder[_M]) -> _M | None:
        """Check and count a frame, and give its message.

        `None` means: a bare acknowledgement, something received before, or a kind of message
        that only newer peers know.

        Raises:
            LinkBroken: Not a frame, a gap in the numbers, or an impossible acknowledgement.
        """
        frame = _decode_frame(text)
        if frame.ack > self._sent_seq:
            raise LinkBroken(
                "link_bad_ack",
                "the peer acknowledges what was never sent",
                ack=frame.ack,
                sent_seq=self._sent_seq,
            )
        self._acknowledged(frame.ack)
        if frame.seq:
            if frame.seq <= self.received_seq:
                return None
            if frame.seq != self.received_seq + 1:
                raise LinkBroken(
                    "link_gap", "a message is missing", seq=frame.seq, after=self.received_seq
                )
            self.received_seq = frame.seq
        return _decode_message(frame.message, decoder)

    def _acknowledged(self, seq: int) -> None:
        while self._kept and self._kept[0][0] <= seq:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def _frame(self, seq: int, body: bytes) -> str:
        self._told_seq = self.received_seq
        return _ENCODER.encode(
            Frame(seq=seq, ack=self.received_seq, message=msgspec.Raw(body))
        ).decode()


def opening_frame(message: LinkMessage) -> str:
    """Write a message of a connection that has no session yet: a hello, a refusal."""
    return _ENCODER.encode(Frame(message=msgspec.Raw(_ENCODER.encode(message)))).decode()


def decode_opening_from_agent(text: str | bytes) -> AgentMessage | None:
    """Read the first frame of an agent, which belongs to no session.

    Raises:
        LinkBroken: Not a frame, or not a message.
    """
    return _decode_message(_decode_frame(text).message, _AGENT_DECODER)


def decode_opening_from_server(text: str | bytes) -> ServerMessage | None:
    """Read the first frame of a server, which belongs to no session.

    Raises:
        LinkBroken: Not a frame, or not a message.
    """
    return _decode_message(_decode_frame(text).message, _SERVER_DECODER)
