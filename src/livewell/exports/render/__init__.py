"""Render one document in a child process that can be killed.

    render() ──▶ idle child ──request──▶ child ──reply──▶ Rendered, or RenderRefused
                    ▲                      │
                    └── spare, started ◀───┴── deadline, memory, death: killed, RenderKilled

A render function is ordinary Python, `name(document: bytes, options: bytes) -> Rendered`. Nothing
can stop a library that loops inside a thread, so the function runs in a child process: it is
sandboxed before it reads a document, and it is killed at its deadline without touching others.

renderer.py       the pool: how many at once, who waits, the spare, when a child is replaced
child_process.py  one child, seen from the parent: started, asked, killed, reaped
child.py          the program that runs in the child
sandbox.py        what the child gives up before it reads a document
syscalls.py       the system calls that it keeps
frames.py         how the two talk
rendered.py       what comes back: bytes and pages, or a reason
"""
