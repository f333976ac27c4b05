-- order_check: one row: whether any new point does not follow the one before it in the order of series and t.
-- from: new_points.
-- columns: unsorted.
-- law: L4. A file is sorted by series and t; points that come in that order need no sorting.
SELECT EXISTS (
  FROM (SELECT rank, t, lag(rank) OVER () AS rank_before, lag(t) OVER () AS t_before FROM new_points)
  WHERE rank < rank_before OR (rank = rank_before AND t <= t_before)
) AS unsorted
