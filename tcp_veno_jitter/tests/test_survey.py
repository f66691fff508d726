# SPDX-License-Identifier: GPL-2.0-only
"""wccp-survey reads what nl80211 says, and survives what it could say. No device is needed."""

import errno
import random
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from labtest.guest import load_script

TOOL = Path(__file__).resolve().parents[1] / "tools" / "wccp-survey"


survey = load_script(TOOL)


def attribute(kind: int, content: bytes) -> bytes:
    text = struct.pack("=HH", 4 + len(content), kind) + content
    return text + bytes(-len(text) % 4)


def u64(value: int) -> bytes:
    return struct.pack("=Q", value)


def result(*info: bytes) -> bytes:
    """Return a NEW_SURVEY_RESULTS as the kernel lays it out (nl80211_send_survey())."""
    frequency = attribute(1, struct.pack("=I", 2412))
    return (
        struct.pack("=BBH", 51, 1, 0)
        + attribute(3, struct.pack("=I", 7))
        + attribute(84 | 0x8000, frequency + b"".join(info))
    )


IN_USE, TIME, BUSY = attribute(3, b""), attribute(4, u64(5000)), attribute(5, u64(1234))


def test_times_of_the_channel_in_use():
    assert survey.survey_times_ns(result(IN_USE, TIME, BUSY)) == (1_234_000_000, 5_000_000_000)


@pytest.mark.parametrize("info", [(TIME, BUSY), (IN_USE, BUSY), (IN_USE, TIME), ()])
def test_what_is_not_told_is_not_made_up(info):
    assert survey.survey_times_ns(result(*info)) is None


@pytest.mark.parametrize("width", [0, 1, 3, 7, 9])
def test_a_number_of_a_strange_width_is_none(width):
    times = (attribute(4, bytes(width)), attribute(5, bytes(width)))
    assert survey.survey_times_ns(result(IN_USE, *times)) is None


def test_hostile_bytes_are_read_to_their_end():
    """Whatever is cut or changed: a result, or none."""
    choose = random.Random(1)
    whole = result(IN_USE, TIME, BUSY)
    for _ in range(20000):
        text = bytearray(whole[: choose.randrange(len(whole) + 1)])
        for _ in range(choose.randrange(4)):
            if text:
                text[choose.randrange(len(text))] = choose.randrange(256)
        found = survey.survey_times_ns(bytes(text))
        assert found is None or all(0 <= ns < 2**64 * 10**6 for ns in found)
        list(survey.messages(bytes(text)))


class Kernel:
    """A netlink socket that answers from a list of datagrams."""

    def __init__(self, *datagrams: bytes):
        self.datagrams = list(datagrams)

    def send(self, _message: bytes) -> None:
        pass

    def recv(self, _most: int) -> bytes:
        return self.datagrams.pop(0)


def message(kind: int, content: bytes, flags: int = 0, sequence: int = 1) -> bytes:
    return struct.pack("=IHHII", 16 + len(content), kind, flags, sequence, 0) + content


def dump(sequence: int) -> bytes:
    """Return a whole answer."""
    done = message(survey.NLMSG_DONE, bytes(4), sequence=sequence)
    return message(30, result(IN_USE, TIME, BUSY), sequence=sequence) + done


def test_a_dump_of_several_channels():
    """The one in use is taken, from whichever datagram."""
    other, used = result(TIME, BUSY), result(IN_USE, TIME, BUSY)
    done = message(survey.NLMSG_DONE, bytes(4))
    kernel = Kernel(message(30, other) + message(30, other), message(30, used), done)
    assert survey.read_survey(kernel, 30, "lo") == (1_234_000_000, 5_000_000_000)


@pytest.mark.parametrize(
    ("datagrams", "complaint"),
    [
        ((message(survey.NLMSG_DONE, bytes(4)),), "does not tell how busy"),
        ((message(survey.NLMSG_ERROR, struct.pack("=i", -95)),), "has no survey"),
    ],
)
def test_a_driver_without_a_survey_is_one_line(datagrams, complaint):
    with pytest.raises(survey.NoSurvey, match=complaint):
        survey.read_survey(Kernel(*datagrams), 30, "lo")


def test_what_is_wrong_for_a_while_does_not_end_it(monkeypatch, capsys):
    """Buffers that overran, a dump that was cut, a device that bounced: said once each, and that
    it is over; what another device says is told all the while."""
    told = []
    monkeypatch.setattr(survey, "tell", lambda device, *_times: told.append(device))
    devices = {"lo": 1, "wlan9": 9}

    def index(name: str) -> int:
        if not devices.get(name):
            raise OSError(errno.ENODEV, "no such device")
        return devices[name]

    monkeypatch.setattr(survey.socket, "if_nametoindex", index)
    teller = survey.Teller(None, 30, ["wlan9", "lo"])
    overrun = message(survey.NLMSG_ERROR, struct.pack("=i", -errno.ENOBUFS), sequence=1)
    teller.link = Kernel(overrun, dump(2))
    teller.round()
    late = message(30, result(IN_USE, TIME, BUSY), sequence=1)
    cut = message(30, b"", flags=survey.NLM_F_DUMP_INTR, sequence=3)
    teller.link = Kernel(late + cut, dump(4), dump(6), dump(8))
    teller.round()
    devices["wlan9"] = 0
    teller.round()
    teller.round()
    devices["wlan9"] = 9
    teller.link = Kernel(dump(9), dump(10))
    teller.round()
    assert told == ["lo"] * 4 + ["wlan9", "lo"]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4 and all(line.startswith("wccp-survey: ") for line in said)
    assert "no answer" in said[0] and "changed" in said[1]
    assert said[2:] == ["wccp-survey: no device wlan9", "wccp-survey: wlan9: told again"]


def test_a_kernel_that_does_not_answer_is_not_waited_for(monkeypatch):
    """The socket has a time limit; when it is over, that is one line."""
    monkeypatch.setattr(survey, "ANSWER_S", 0.01)
    monkeypatch.setattr(survey, "request", lambda *_arguments: message(0, b"", sequence=1))
    with survey.netlink() as link, pytest.raises(survey.NoSurvey, match="no answer"):
        survey.read_survey(link, 30, "lo")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["no-such-dev", "--once"], 1), (["lo", "--interval-ms", "1"], 2), ([], 2)],
)
def test_the_command_says_what_is_wrong(arguments, status):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == status and "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("wccp-survey: ")


def test_netlink_is_asked_as_it_wants():
    """This kernel's generic netlink takes the request: it knows no such family, or which it is."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, survey.NETLINK_GENERIC) as link:
        name = b"nlctrl\0"
        ask = survey.request(
            survey.GENL_ID_CTRL, 0, survey.CTRL_CMD_GETFAMILY, survey.CTRL_ATTR_FAMILY_NAME, name
        )
        link.send(ask)
        content = next(survey.answers(link, ends=False))
    found = survey.attributes(content[4:])[survey.CTRL_ATTR_FAMILY_ID]
    assert int.from_bytes(found, "little") == survey.GENL_ID_CTRL
