"""Livewell from blocking code, as in Flask, Django or a script: the same, through `app.sync`.

python examples/blocking_code.py
"""

from concurrent.futures import ThreadPoolExecutor

from livewell import Livewell

app = Livewell()


@app.task(queue="signups")
def greet(user_id: int) -> None:
    """Runs in a worker: `livewell worker`."""


def sign_up(user_id: int, *, name: str) -> None:
    """A request handler: the user and the job that greets them exist together, or neither does."""
    with app.sync.transaction() as tx:
        tx.execute("INSERT INTO member (id, name) VALUES (%s, %s)", (user_id, name))
        app.sync.enqueue(greet, user_id=user_id, tx=tx)
        if not name:
            raise ValueError(f"user {user_id} has no name")


def main() -> None:
    """Four requests at once, one of them wrong."""
    app.sync.open(apply_migrations=True)
    with app.sync, ThreadPoolExecutor(4) as threads:
        with app.sync.transaction() as tx:
            tx.execute("DROP TABLE IF EXISTS member")
            tx.execute("CREATE TABLE member (id integer PRIMARY KEY, name text NOT NULL)")
        for request in [threads.submit(sign_up, n, name=name) for n, name in enumerate(["Ada", "Bo", "", "Cy"], 1)]:
            if request.exception() is not None:
                print(f"refused: {request.exception()}")
        app.sync.enqueue(greet.options(delay="1h"), user_id=1)
        jobs = app.sync.admin.jobs(queue="signups")
        print(f"jobs: {sorted(job['state'] for job in jobs)}")
        for job in jobs:
            app.sync.admin.cancel(job["id"])
        with app.sync.transaction() as tx:
            tx.execute("DROP TABLE member")


if __name__ == "__main__":
    main()
