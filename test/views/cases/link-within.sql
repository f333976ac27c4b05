-- Versions of a link that overlap are one period, however they lie.
SELECT metric_asset, product_id, basis, valid_from, valid_to FROM links WHERE metric_asset = 'CARRIED';
/*
metric_asset | product_id | basis | valid_from | valid_to
CARRIED | retires | address | 2024-11-01T06:00:00.000000Z | 2024-11-20T00:00:00.000000Z
*/
