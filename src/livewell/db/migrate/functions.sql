-- The functions of schema livewell and a hash of each definition; overloads of one name count as
-- one.
SELECT p.proname::text AS name,
    encode(
        sha256(
            convert_to(
                string_agg(
                    pg_catalog.pg_get_functiondef(p.oid),
                    E'\n' ORDER BY pg_catalog.pg_get_function_identity_arguments(p.oid) COLLATE "C"
                ),
                'UTF8'
            )
        ),
        'hex'
    ) AS hash
FROM pg_catalog.pg_proc p
WHERE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
    AND p.prokind <> 'a'
GROUP BY p.proname
