"""What every store of artifacts must do, as checks that run against any of them.

    @pytest.mark.parametrize("check", checks("network"), ids=lambda check: check.__name__)
    async def test_my_store(check: Check, lab: MyLab) -> None:
        await check(lab)

A lab makes stores that share one place, looks into that place past them, and breaks what lies
between. A check raises Broken, an AssertionError, which says what the store did wrong.

lab       what a lab offers
checks    the checks themselves
network   those of a network that breaks
parts     what they are made of
errors    what an error of a store may say
"""

from livewell.testing.artifacts.checks import Check, checks
from livewell.testing.artifacts.errors import Broken
from livewell.testing.artifacts.lab import ArtifactLab

__all__ = ["ArtifactLab", "Broken", "Check", "checks"]
