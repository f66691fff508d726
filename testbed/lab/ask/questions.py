# SPDX-License-Identifier: GPL-2.0-only
"""What scenarios are about: the `question` that a file may name, and the words for it."""

QUESTIONS = {
    "noise": "What does random loss cost one flow?",
    "bursts": "And losses in bursts, delays that vary, a link that repeats frames?",
    "links": "How is it on links as people have them?",
    "queues": "What do rates and queues change?",
    "way-back": "What does the way back change?",
    "hops": "What do more hops change, each with traffic of its own?",
    "rivals": "What becomes of flows beside other algorithms?",
    "kin": "Do flows of one kind share equally?",
    "harm": "Where does it do harm?",
    "short": "How long do short transfers take?",
    "truth": "Is a loss taken for what it is?",
    "sctp": "What does SCTP gain, with one home and with two?",
    "tfrc": "What do streams over UDP gain (TFRC)?",
    "chains": "What happens on an 802.11 chain of several hops?",
    "lab": "Can the lab be believed, and how fast is it?",
}
OWN = "Others"  # of files that name none
