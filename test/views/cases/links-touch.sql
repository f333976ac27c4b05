-- An asset that is one product up to an instant and another from it on is never two at once: links that touch do not overlap.
SELECT product_id, basis, ambiguous, valid_from, valid_to FROM links WHERE metric_asset = 'TAKEN' ORDER BY valid_from;
/*
product_id | basis | ambiguous | valid_from | valid_to
before | symbol | false | 2024-11-01T06:00:00.000000Z | 2024-11-20T00:00:00.000000Z
after | symbol | false | 2024-11-20T00:00:00.000000Z | infinity
*/
