"""What a call gets: a refusal, a fault, or the true answer.

    decide ──▶ refused (limits, plan, key)? ──▶ fault due (fault_deck)? corrupt ──▶ rows of data/

decide       the order of those questions, and what must be remembered between calls
limits       calls in a window, bytes in 30 days
refusals     the words that FMP refuses with
faults       every fault by name and family, and the shares of a hostile day
fault_deck   which call gets which fault, by seed
corrupt      the faulty answer, made from the true rows
"""
