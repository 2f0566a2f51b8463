-- What the tables of schema livewell look like: one row per object, key → definition.
--
-- Partition children are left out: they come and go. So are definitions that print differently from
-- one Postgres to the next (view bodies, and NOT NULL constraints, which are rows of pg_constraint
-- from 18 on; the column says it already).
-- Runs with search_path = '', else names print differently for different users.
WITH table_ AS (
    SELECT c.oid, c.relname, c.relkind, c.reloptions, c.relrowsecurity, c.relforcerowsecurity,
        c.relpersistence
    FROM pg_catalog.pg_class c
    WHERE c.relnamespace = (
        SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell'
    )
        AND c.relkind IN ('r', 'p', 'v', 'm')
        AND NOT c.relispartition
)
SELECT 'table ' || t.relname AS object,
    concat_ws(
        ' ',
        CASE t.relkind
            WHEN 'r' THEN 'table'
            WHEN 'p' THEN 'partitioned table'
            WHEN 'v' THEN 'view'
            ELSE 'materialized view'
        END,
        CASE t.relpersistence WHEN 'u' THEN 'unlogged' END,
        CASE WHEN t.relrowsecurity THEN 'row security' END,
        CASE WHEN t.relforcerowsecurity THEN 'forced' END,
        'with (' || (
            SELECT string_agg(o, ', ' ORDER BY o COLLATE "C") FROM unnest(t.reloptions) AS o
        ) || ')'
    ) AS definition
FROM table_ t
UNION ALL
SELECT 'column ' || t.relname || '.' || a.attname,
    concat_ws(
        ' ', pg_catalog.format_type(a.atttypid, a.atttypmod),
        'collate ' || (
            SELECT co.collname FROM pg_catalog.pg_collation co, pg_catalog.pg_type ty
            WHERE co.oid = a.attcollation
                AND ty.oid = a.atttypid
                AND a.attcollation <> ty.typcollation
        ),
        CASE WHEN a.attnotnull THEN 'not null' END,
        CASE a.attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' END,
        CASE a.attgenerated WHEN '' THEN 'default ' ELSE 'generated ' END
            || pg_catalog.pg_get_expr(d.adbin, d.adrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
UNION ALL
SELECT 'constraint ' || t.relname || '.' || c.conname, pg_catalog.pg_get_constraintdef(c.oid)
FROM table_ t
JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid AND c.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT 'index ' || t.relname || '.' || c.relname,
    pg_catalog.pg_get_indexdef(i.indexrelid) || CASE WHEN i.indisvalid THEN '' ELSE ' (invalid)' END
FROM table_ t
JOIN pg_catalog.pg_index i ON i.indrelid = t.oid
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
UNION ALL
SELECT 'trigger ' || t.relname || '.' || g.tgname,
    pg_catalog.pg_get_triggerdef(g.oid) || CASE g.tgenabled WHEN 'D' THEN ' (disabled)' ELSE '' END
FROM table_ t
JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT 'policy ' || t.relname || '.' || p.polname,
    concat_ws(
        ' ', p.polcmd, CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END,
        (
            SELECT string_agg(r.rolname, ', ' ORDER BY r.rolname COLLATE "C")
            FROM pg_catalog.pg_roles r
            WHERE r.oid = ANY (p.polroles)
        ),
        'using ' || pg_catalog.pg_get_expr(p.polqual, p.polrelid),
        'check ' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)
    )
FROM table_ t
JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid
UNION ALL
SELECT 'type ' || ty.typname,
    'enum ' || (
        SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e
        WHERE e.enumtypid = ty.oid
    )
FROM pg_catalog.pg_type ty
WHERE ty.typnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
    AND ty.typtype = 'e'
UNION ALL
SELECT 'sequence ' || c.relname,
    concat_ws(
        ' ', pg_catalog.format_type(s.seqtypid, NULL), 'increment', s.seqincrement, 'cache',
        s.seqcache
    )
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'livewell')
