"""Emit in a transaction of SQLAlchemy: async with asyncpg, and blocking with psycopg.

python examples/emit_in_sqlalchemy.py (it needs: pip install "sqlalchemy[asyncio]" asyncpg)
"""

import asyncio
import os

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from livewell import Livewell

app = Livewell()
app.outbox.topic("parcels.packed")


class Base(DeclarativeBase):
    """Of the tables here."""


class Parcel(Base):
    """What is packed."""

    __tablename__ = "parcel"
    number: Mapped[int] = mapped_column(primary_key=True)
    weight: Mapped[float]


def address(driver: str) -> URL:
    """DATABASE_URL as SQLAlchemy writes it."""
    found = conninfo_to_dict(os.environ["DATABASE_URL"])
    return URL.create(
        f"postgresql+{driver}",
        username=str(found["user"]),
        password=str(found.get("password", "")),
        host=str(found["host"]),
        port=int(found.get("port") or 5432),
        database=str(found["dbname"]),
    )


def pack(number: int, weight: float) -> None:
    """In blocking code: the parcel and its event exist together, or neither does."""
    with Session(engine) as session, session.begin():
        session.add(Parcel(number=number, weight=weight))
        app.sync.emit("parcels.packed", key=str(number), payload={"number": number}, tx=session)
        if weight > 30:
            raise ValueError(f"parcel {number} is too heavy")


async def pack_async(number: int, weight: float) -> None:
    """The same with an AsyncSession."""
    async with AsyncSession(async_engine) as session, session.begin():
        session.add(Parcel(number=number, weight=weight))
        await app.emit("parcels.packed", key=str(number), payload={"number": number}, tx=session)
        if weight > 30:
            raise ValueError(f"parcel {number} is too heavy")


async def main() -> None:
    """Two parcels each way, one of them too heavy."""
    await app.open(apply_migrations=True)
    Base.metadata.create_all(engine)
    for number, weight in ((1, 2.5), (2, 40.0)):
        try:
            await pack_async(number, weight)
        except ValueError as error:
            print(f"refused: {error}")
    for number, weight in ((3, 2.5), (4, 40.0)):
        try:
            await asyncio.to_thread(pack, number, weight)
        except ValueError as error:
            print(f"refused: {error}")
    parcels = await app.database.call("SELECT array_agg(number ORDER BY number) FROM parcel")
    events = await app.database.call("SELECT array_agg(key ORDER BY number) FROM livewell.event")
    print(f"parcels {parcels[0][0]}, events {events[0][0]}")
    Base.metadata.drop_all(engine)
    await async_engine.dispose()
    engine.dispose()
    await app.close()


if __name__ == "__main__":
    engine, async_engine = create_engine(address("psycopg")), create_async_engine(address("asyncpg"))
    asyncio.run(main())
