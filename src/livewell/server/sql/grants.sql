-- Who may do what with keys. Re-applied when this file changes; skipped where roles cannot be created.
-- Making, listing and revoking keys is the owner's alone: whoever may make a key may do everything a key may.
GRANT EXECUTE ON FUNCTION livewell.find_key, livewell.touch_key, livewell.redeem_link TO livewell_api;
