-- What a universe is chosen by is known from the poll on that brought it, of issuers, assets and contracts, too.
CREATE TEMP TABLE d AS SELECT TIMESTAMPTZ '2024-11-11 00:00:00+00' AS ts;
SET VARIABLE as_of = '2024-11-10 09:00';
SELECT product_id FROM pit_universe('d', issuer_name = 'Late');
/*
product_id
before
*/
SELECT product_id FROM pit_universe('d', ticker = 'NEW');
/*
product_id
before
*/
SELECT product_id FROM pit_universe('d', len(deployments) = 3);
/*
product_id
retires
*/
SET VARIABLE as_of = '2024-11-10 08:59:59.999999';
SELECT product_id FROM pit_universe('d', issuer_name = 'Late');
/*
product_id
*/
SELECT product_id FROM pit_universe('d', ticker = 'OLD');
/*
product_id
before
*/
SELECT product_id FROM pit_universe('d', len(deployments) = 2);
/*
product_id
retires
*/
