-- What follows from each reason for which an answer is not stored: {reason: {fate, ledger, fared}}.
--
-- Called by: settle_refreshes, move_ledger, change_questions, why_key.
-- The closed list is refresh/reasons.py; a test compares this with it. There: what the words mean,
-- whose fault each reason is, and what people are told.
-- fate:      of the job. ledger: what move_ledger does with the key's row. fared: how the call
--            counts for the limiter; without it the blame that came with the result decides.
-- Why one constant: it is folded into the plan of its caller, so nothing is called for each result.
-- A session that has such a plan keeps it when this list changes, until the caller is planned anew.
CREATE OR REPLACE FUNCTION livewell.refresh_reasons()
RETURNS jsonb
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $$
BEGIN
    RETURN '{
        "not_json": {"fate": "retry", "ledger": "failing"},
        "not_utf8": {"fate": "retry", "ledger": "failing"},
        "html": {"fate": "retry", "ledger": "failing"},
        "error_object": {"fate": "retry", "ledger": "failing"},
        "truncated": {"fate": "retry", "ledger": "failing"},
        "too_large": {"fate": "retry", "ledger": "failing"},
        "bomb": {"fate": "retry", "ledger": "failing"},
        "too_deep": {"fate": "retry", "ledger": "failing"},
        "bad_number": {"fate": "retry", "ledger": "failing"},
        "bad_text": {"fate": "retry", "ledger": "failing"},
        "empty": {"fate": "retry", "ledger": "failing", "fared": "upstream"},
        "wrong_shape": {"fate": "retry", "ledger": "failing"},
        "content_type": {"fate": "retry", "ledger": "failing"},
        "missing_field": {"fate": "retry", "ledger": "failing"},
        "wrong_type": {"fate": "retry", "ledger": "failing"},
        "out_of_bounds": {"fate": "retry", "ledger": "failing"},
        "wrong_key": {"fate": "retry", "ledger": "failing"},
        "duplicate_row": {"fate": "retry", "ledger": "failing"},
        "no_source_time": {"fate": "retry", "ledger": "failing", "fared": "upstream"},
        "future_source": {"fate": "retry", "ledger": "failing"},
        "older": {"fate": "succeeded", "ledger": "older", "fared": "data"},
        "status": {"fate": "retry", "ledger": "failing"},
        "deadline": {"fate": "retry", "ledger": "failing"},
        "connection": {"fate": "retry", "ledger": "failing"},
        "refused_address": {"fate": "retry", "ledger": "failing"},
        "tls": {"fate": "retry", "ledger": "failing"},
        "rate_wall": {"fate": "released", "ledger": "failing", "fared": "ours"},
        "bandwidth_wall": {"fate": "released", "ledger": "failing", "fared": "wall"},
        "entitlement_key": {"fate": "cancelled", "ledger": "parked_key", "fared": "data"},
        "entitlement_type": {"fate": "cancelled", "ledger": "parked_type", "fared": "data"},
        "auth": {"fate": "retry", "ledger": "failing"},
        "suspended": {"fate": "retry", "ledger": "failing"},
        "legacy_path": {"fate": "cancelled", "ledger": "parked_type", "fared": "data"},
        "transient": {"fate": "retry", "ledger": "failing"},
        "type_changed": {"fate": "succeeded", "ledger": "due"}
    }'::pg_catalog.jsonb;
END
$$;
COMMENT ON FUNCTION livewell.refresh_reasons IS
    'The reasons for which an answer is not stored, and what follows from each.';
REVOKE ALL ON FUNCTION livewell.refresh_reasons FROM PUBLIC;
