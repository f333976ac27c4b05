-- TIME 49: a symbol that another issuer takes over leads to each product in its time.
CREATE TEMP TABLE d AS SELECT unnest(['2024-11-19 23:59:59', '2024-11-20']) AS ts;
SELECT ts, product_id, issuer_id FROM pit_universe('d') WHERE symbol = 'SAME' ORDER BY ts;
/*
ts | product_id | issuer_id
2024-11-19 23:59:59 | before | i1
2024-11-20 | after | i2
*/
