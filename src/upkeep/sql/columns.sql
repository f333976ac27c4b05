-- The columns of which some files differ, each with a digest of its own, for the report of an abandoned merge.
-- columns: one VARCHAR a column of the files.
-- law: L3.
SELECT {{digests}} FROM {{source}}
