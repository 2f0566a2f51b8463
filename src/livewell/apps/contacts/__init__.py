"""Contacts: who is this? People by the identities they are known by, tenant by tenant (O9).

    identities ──resolve──▶ contact ──merged──▶ an older contact, which answers for both ids
                    │          └──erased──▶ hashes, so that a replayed event does not make it again
                    └──a limit, or a policy that asks──▶ conflict ──decided──▶ merged, or kept apart

The state machine is in SQL (resolve_contact and what it calls); every change emits its events in
the same transaction. docs/concepts/contacts.md explains it.

capability.py  what contacts offer to the rest
contacts.py    `app.contacts`: resolve, find, show, decide, unmerge, erase, policies
identities.py  how a call names identities
model.py       what is answered
doctor.py      conflicts that wait for a person
gauges.py      how many there are, as metrics
stuck.py       the same in few words
demo/          `livewell demo contacts`
"""
