-- One label of a domain in ASCII, without its xn-- (RFC 3492).
--
-- Called by: normal_domain, for labels that are not ASCII.
CREATE OR REPLACE FUNCTION livewell.punycode(p_label text)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
STRICT
SET search_path = ''
AS $$
DECLARE
    c_digits    CONSTANT pg_catalog.text := 'abcdefghijklmnopqrstuvwxyz0123456789';
    v_points    integer[];
    v_basic     pg_catalog.text := regexp_replace(p_label, '[^\x01-\x7f]', '', 'g');
    v_out       pg_catalog.text;
    v_done      integer := length(v_basic);
    v_first     integer := v_done;
    v_n         integer := 128;
    v_delta     bigint := 0;
    v_bias      integer := 72;
    v_next      integer;
    v_point     integer;
    v_q         bigint;
    v_k         integer;
    v_t         integer;
BEGIN
    v_points := ARRAY(
        SELECT ascii(c.letter)
        FROM regexp_split_to_table(p_label, '') WITH ORDINALITY AS c (letter, place)
        ORDER BY c.place
    );
    v_out := v_basic || CASE WHEN v_done > 0 THEN '-' ELSE '' END;
    WHILE v_done < cardinality(v_points) LOOP
        SELECT min(p.point) INTO v_next FROM unnest(v_points) p (point) WHERE p.point >= v_n;
        v_delta := v_delta + (v_next - v_n)::bigint * (v_done + 1);
        v_n := v_next;
        FOREACH v_point IN ARRAY v_points LOOP
            IF v_point < v_n THEN
                v_delta := v_delta + 1;
            ELSIF v_point = v_n THEN
                v_q := v_delta;
                v_k := 36;
                LOOP
                    v_t := least(greatest(v_k - v_bias, 1), 26);
                    EXIT WHEN v_q < v_t;
                    v_out := v_out
                        || substr(c_digits, (v_t + (v_q - v_t) % (36 - v_t))::integer + 1, 1);
                    v_q := (v_q - v_t) / (36 - v_t);
                    v_k := v_k + 36;
                END LOOP;
                v_out := v_out || substr(c_digits, v_q::integer + 1, 1);
                -- The bias adapts: first halved more, then by how much there is.
                v_delta := CASE WHEN v_done = v_first THEN v_delta / 700 ELSE v_delta / 2 END;
                v_done := v_done + 1;
                v_delta := v_delta + v_delta / v_done;
                v_k := 0;
                WHILE v_delta > 455 LOOP
                    v_delta := v_delta / 35;
                    v_k := v_k + 36;
                END LOOP;
                v_bias := (v_k + 36 * v_delta / (v_delta + 38))::integer;
                v_delta := 0;
            END IF;
        END LOOP;
        v_delta := v_delta + 1;
        v_n := v_n + 1;
    END LOOP;
    RETURN v_out;
END
$$;
COMMENT ON FUNCTION livewell.punycode IS 'A label of a domain in ASCII, without its xn--.';
REVOKE ALL ON FUNCTION livewell.punycode FROM PUBLIC;
