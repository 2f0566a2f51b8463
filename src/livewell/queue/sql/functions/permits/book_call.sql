-- Book what a call used that was made with a permit of take_call.
--
-- Called by: `livewell types sample`, whatever came of the call; sent again after a lost answer it
--            books nothing twice (once per fence).
CREATE OR REPLACE FUNCTION livewell.book_call(
    p_limiter text, p_credential text, p_fence bigint, p_units bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $$
BEGIN
    PERFORM FROM livewell.limiter l WHERE l.name = p_limiter FOR NO KEY UPDATE;
    -- 0: nothing came, so it may still be on its way.
    PERFORM livewell.end_calls(p_limiter, p_credential, ARRAY[p_fence], ARRAY[p_units > 0]);
    -- A kind of its own: what people try out teaches the estimates of jobs nothing.
    PERFORM livewell.book_usage(
        p_limiter, p_credential, ARRAY[p_fence], ARRAY[p_units], ARRAY['livewell.sample'],
        ARRAY[true]
    );
END
$$;
COMMENT ON FUNCTION livewell.book_call IS 'Books the units of one call that take_call permitted.';
REVOKE ALL ON FUNCTION livewell.book_call FROM PUBLIC;
