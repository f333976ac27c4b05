-- A product is first seen at the poll that first showed it, whatever changed since and whatever the cut.
SELECT product_id, valid_from, first_seen FROM universe ORDER BY product_id;
/*
product_id | valid_from | first_seen
after | 2024-11-20T00:00:00.000000Z | 2024-11-20T00:00:00.000000Z
before | 2024-11-20T00:00:00.000000Z | 2024-11-01T06:00:00.000000Z
retires | 2024-11-10T09:00:00.000000Z | 2024-11-01T06:00:00.000000Z
*/
