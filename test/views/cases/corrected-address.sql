-- TIME 48: a corrected address is a second deployment, the first retires.
SELECT id, address, status FROM deployments ORDER BY id;
/*
id | address | status
new | 0x2 | active
old | 0x1 | inactive
*/
