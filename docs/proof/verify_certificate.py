#!/usr/bin/env python3
"""Checks certificates of pitlake without pitlake; ../proof.md tells their format, and what they prove.

    python3 verify_certificate.py CERTIFICATE... [--key PUBLIC] [--head FILE] [--tables DIR]

prints a line each: valid (exit 0), or not valid and why (exit 4). --key: the public key, or its file, as its owner gave
it to you by another way; else the certificate's own is taken. --head: a head that you kept. --tables: published tables,
whose points are digested anew with DuckDB (package duckdb); the result beside the certificate gives its figure again.
"""

import base64
import hashlib
import json
import os
import re
import sys
from urllib.parse import unquote

class Refused(Exception): """Why a certificate is not valid."""
def must(fact, why):
    if not fact:
        raise Refused(why)
    return fact
def sha256(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).digest()
def read(path):
    with open(path, "rb") as opened:
        return opened.read()
def is_text(value):
    return isinstance(value, str)
def count_of(value):
    """A whole number as JSON may write it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 2**53 and value == int(value) else None
def is_hash(value):
    return is_text(value) and re.fullmatch(r"[0-9a-f]{64}", value) is not None
def unbase64(text, what):
    data = base64.b64decode(text, validate=True)
    return must(base64.b64encode(data).decode() == text and data, f"{what} is no base64")
def proof_of(told, what):
    must(isinstance(told, list) and all(is_hash(one) for one in told), f"{what} is no list of hashes")
    return [bytes.fromhex(one) for one in told]
def strict_json(text):
    """JSON in which no object names a key twice, and nothing but JSON."""
    def once(pairs):
        must(len({key for key, _ in pairs}) == len(pairs), "a key stands there twice")
        return dict(pairs)
    value = json.loads(text, object_pairs_hook=once, parse_constant=lambda name: must(False, f"{name} is no JSON"))
    json.dumps(value, ensure_ascii=False).encode()  # Fails where half of a character stands.
    return value

# --- Ed25519 (RFC 8032): points of the curve in extended coordinates
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

def recover_x(y, sign):
    """The x of a point of which y and the lowest bit of x are known; None where there is none."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * ROOT % P
    if (x * x - square) % P != 0:
        return None
    return P - x if (x & 1) != sign else x
def point_of(data):
    sign, y = divmod(int.from_bytes(data, "little"), 1 << 255)
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)
def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return (e * f % P, g * h % P, f * g % P, e * h % P)
def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result
def encoded(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")

BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BASE_Y, 0), BASE_Y, 1, recover_x(BASE_Y, 0) * BASE_Y % P)
def is_signed(key, message, signature):
    point, s = point_of(key), int.from_bytes(signature[32:], "little")
    if point is None or len(signature) != 64 or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    x, y, z, t = multiply(k, point)
    return encoded(add(multiply(s, BASE), (P - x, y, z, P - t))) == signature[:32]

# --- signed notes and checkpoints (C2SP signed-note, tlog-checkpoint)
def read_key(text):
    form = re.fullmatch(r"([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text)
    name, own, told = must(form, "the key is no public key").groups()
    data = unbase64(told, "the key")
    must(len(data) == 33 and data[0] == 1, "the key is not one of Ed25519")
    must(sha256(name.encode() + b"\n" + data).hex()[:8] == own, "the key does not have the id that it names")
    return name, own, data[1:]

def signed_text(note, key, what):
    """The text of a note that bears a sound signature of the key, and who else signed it."""
    name, own, point = key
    at = note.rfind("\n\n")
    must(at >= 0 and note.endswith("\n"), f"{what} is no signed note")
    text, others, sound = note[: at + 1], [], False
    for line in note[at + 2 : -1].split("\n"):
        form = re.fullmatch(r"— ([!-*,-~]+) ([A-Za-z0-9+/]+={0,2})", line)
        who, told = must(form, f"{what} has no such signature").groups()
        data = unbase64(told, f"a signature of {what}")
        if who != name or data[:4].hex() != own:
            others.append(who)
        else:
            right = len(data) == 68 and is_signed(point, text.encode(), data[4:])
            sound = must(right, f"the signature of {what} is wrong")
    must(sound, f"{what} is not signed by {name}")
    return text, others
def read_head(note, key, what):
    text, others = signed_text(must(is_text(note) and note, f"there is no {what}"), key, what)
    form = re.fullmatch(r"([^\n]+)\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/]{43}=)\n", text)
    origin, size, told = must(form, f"{what} is no checkpoint").groups()
    return {"origin": origin, "size": int(size), "root": unbase64(told, what).hex(), "others": others}

# --- trees of RFC 6962: a leaf is hashed behind 0, a node behind 1; left stands the largest power of two below n
def leaf_of(text):
    return sha256(b"\x00" + text.encode())
def node_of(left, right):
    return sha256(b"\x01" + left + right)
def split(n):
    return 1 << ((n - 1).bit_length() - 1)

def from_leaf(leaf, index, size, proof):
    """The root to which an inclusion proof leads from a leaf of a tree of so many; told from the leaf upwards."""
    rest = list(proof)
    def rise(at, n):
        if n == 1:
            return leaf
        must(rest, "the proof of the entry is too short")
        left, other = split(n), rest.pop()
        return node_of(rise(at, left), other) if at < left else node_of(other, rise(at - left, n - left))
    root = rise(index, size)
    must(not rest, "the proof of the entry is too long")
    return root.hex()

def from_both(older, newer, root, proof):
    """The roots of the older and the newer tree to which a consistency proof leads."""
    rest = list(proof)
    def rise(m, n, whole):
        if m == n and whole:
            return bytes.fromhex(root), bytes.fromhex(root)
        must(rest, "a proof of consistency is too short")
        other = rest.pop()
        if m == n:
            return other, other
        left = split(n)
        old, now = rise(m, left, whole) if m <= left else rise(m - left, n - left, False)
        return (old, node_of(now, other)) if m <= left else (node_of(other, old), node_of(other, now))
    old, now = rise(older, newer, True)
    must(not rest, "a proof of consistency is too long")
    return old.hex(), now.hex()

def from_some(size, known, proof):
    """The root of a tree of which some leaves are known by their index; the proof tells the rest from the left."""
    rest, indices = list(proof), list(known)
    def rise(begin, n):
        if not any(begin <= at < begin + n for at in indices):
            must(rest, "a proof is too short")
            return rest.pop(0)
        if n == 1:
            return known[begin]
        left = split(n)
        return node_of(rise(begin, left), rise(begin + left, n - left))
    root = sha256(b"") if size == 0 else rise(0, size)
    must(not rest, "a proof is too long")
    return root.hex()

def proven_members(value, tree, what):
    """Members of a tree of named values, once they are proved: its value tells how many it has, and its root."""
    form = is_text(value) and re.fullmatch(r"(0|[1-9][0-9]{0,8}) ([0-9a-f]{64})", value)
    size, root = must(form, f"{what} is no tree").groups()
    members = tree.get("members") if isinstance(tree, dict) else None
    must(isinstance(members, list) and members, f"{what} proves nothing")
    known, last = {}, -1
    for member in members:
        index, name, own = count_of(member["index"]), member["name"], member["value"]
        must(index is not None and last < index < int(size), f"{what} has an index that cannot be")
        must(is_text(name) and is_text(own) and "\n" not in own, f"{what} has a member without name and value")
        known[index], last = leaf_of(f"{name}\n{own}"), index
    proof = proof_of(tree.get("proof"), f"the proof of {what}")
    must(from_some(int(size), known, proof) == root, f"{what} has another root")
    return members

def tree_of(members):
    """The value of a tree over all of its named values."""
    must(all(is_text(name) and is_text(value) for name, value in members), "names and values are no texts")
    known = {index: leaf_of(f"{name}\n{value}") for index, (name, value) in enumerate(members)}
    return f"{len(known)} {from_some(len(known), known, [])}"

# --- the certificate
def check(file, asked):
    text = read(file).decode()
    at = text.rfind(',\n"signature": ')
    told = strict_json(must(at >= 0 and text, "there is no signature"))
    signature, own = told.get("signature"), told.get("public")
    end = f',\n"signature": {json.dumps(signature, ensure_ascii=False)}\n}}\n'
    must(text[at:] == end, "the signature is not the end")
    must(count_of(told.get("pitlake_certificate")) == 1, "a form not known here")
    must(told.get("algorithms") == "sha256 ed25519", "algorithms not known here")
    must(is_text(own) and asked.get("key", own) == own, "it was signed by another key than yours")
    key = read_key(own)
    body = f"pitlake certificate\nsha256 {sha256(text[:at]).hex()}\n"
    must(signed_text(signature, key, "the certificate")[0] == body, "a byte of it changed since it was signed")
    head = read_head(told.get("head"), key, "the head")
    entry = must(isinstance(told.get("entry"), dict) and told["entry"], "the entry is not one of the log")
    index, version, when = (count_of(entry.get(name)) for name in ("index", "version", "committed_at"))
    counts = (index, version, when, count_of(told["knowledge"]["version"]))
    must(None not in counts and index < head["size"], "the entry is not one of the log")
    digest, state = entry.get("sha256"), entry.get("state")
    must(is_hash(digest) and is_text(state), "the entry is not one of the log")
    leaf = leaf_of(f"pitlake entry\nversion {version}\ncommitted_at {when}\nsha256 {digest}\nstate {state}\n")
    root = from_leaf(leaf, index, head["size"], proof_of(entry.get("inclusion"), "the proof of the entry"))
    must(root == head["root"], "the entry does not lead to the head")
    kept = read_head(asked["head"], key, "the head that you kept") if "head" in asked else None
    heads = check_heads(told.get("consistency"), head, kept)
    check_state(told, state, proven_members(state, told.get("state"), "the state"))
    stamps = told.get("time_stamps", [])
    must(isinstance(stamps, list), "the time stamps are no list")
    return told, head, [stamp_of(one, heads, key) for one in stamps]

def check_heads(told, head, kept):
    """Older heads lead to the one of the certificate; one that somebody kept must be among them."""
    heads = {head["size"]: head["root"]}
    must(isinstance(told, list), "there are no proofs of consistency")
    for one in told:
        size, root = count_of(one["size"]), one["root"]
        must(size is not None and 0 < size < head["size"] and is_hash(root), "a proof of consistency of no older head")
        roots = from_both(size, head["size"], root, proof_of(one["proof"], "a proof of consistency"))
        must(roots == (root, head["root"]), f"the log does not go on from the head of {size} entries")
        heads[size] = root
    if kept is None:
        return heads
    must(kept["origin"] == head["origin"], "the head that you kept is of another log")
    must(kept["size"] <= head["size"], "the head that you kept is younger: ask for a certificate made since")
    must(kept["size"] in heads, "no proof leads from the head that you kept: ask for one --since it")
    must(heads[kept["size"]] == kept["root"], "the head that you kept is of another history")
    return heads

def stamp_of(told, heads, key):
    """How to prove a time stamp (RFC 3161) of a head that it leads from."""
    note, reply = told["note"], told["reply"]
    head, data = read_head(note, key, "a head with a time stamp"), unbase64(reply, "a time stamp")
    size = head["size"]
    must(heads.get(size) == head["root"], "a time stamp of a head of another history")
    forms = [sha256(form) for form in (note[: note.rfind("\n\n") + 1], note)]
    digest = must(next((one for one in forms if one in data), None), "a time stamp of something else").hex()
    proof = f"openssl ts -verify -digest {digest} -in {size}.tsr -CAfile CA.pem"
    return f"time stamp of {size} entries (not checked): base64 -d > {size}.tsr <<< {reply} && {proof}"

def lacks(value, members, name):
    """Whether neighbours show that a tree, sorted as it is, has no member of that name."""
    places = [(-1, ""), *((one["index"], one["name"]) for one in members), (int(value.split()[0]), "~")]
    return any(at + 1 == behind and one < name < next for (at, one), (behind, next) in zip(places, places[1:]))

def check_state(told, state, groups):
    """What it says of series, tables, rules, the query and tries is what the state tells."""
    none = '{"queries":[]}'
    tried = none if lacks(state, groups, "state") else None
    for group in groups:
        is_state = group["name"] == "state"
        members = proven_members(group["value"], group, f"the group {group['name']}")
        tried = none if is_state and lacks(group["value"], members, "tries") else tried
        for one in members:
            name, value = one["name"], one["value"]
            if "text" in one:
                must(is_text(one["text"]) and sha256(one["text"]).hex() == value, f"the text of {name} is not in force")
            if "months" in one:
                must(tree_of(one["months"]) == value, f"the months of {name} are not those of the state")
            tried = one.get("text") if is_state and name == "tries" else tried
    query, tries = told["query"], told["tries"]
    right = is_text(query["text"]) and sha256(query["text"]).hex() == query["sha256"]
    must(right, "the query is not the one of its digest")
    named = strict_json(must(tried, "nothing shows how many were tried"))["queries"]
    must(count_of(tries["count"]) == len(named), "the count of tries is not that of the state")
    own = next((one["version"] for one in named if one["sha256"] == query["sha256"]), None)
    must(tries["named_in"] is None or tries["named_in"] == own, "the query was not named when it says")

# --- with DuckDB: what the published tables hold, and the figure
def quoted(text):
    return "'" + text.replace("'", "''") + "'"

def delta_files(folder, rows):
    """The files of a Delta table, by its log."""
    log, mark, live, begin = *(os.path.join(folder, "_delta_log", name) for name in ("", "_last_checkpoint")), {}, -1
    if os.path.exists(mark):
        begin = json.loads(read(mark))["version"]
        first = quoted(os.path.join(log, f"{begin:020d}.checkpoint.parquet"))
        live = {path: 1 for (path,) in rows(f"SELECT add.path FROM read_parquet({first}) WHERE add IS NOT NULL")}
    for name in sorted(os.listdir(log)):
        if not re.fullmatch(r"[0-9]{20}\.json", name) or int(name[:20]) <= begin:
            continue
        for line in filter(None, read(os.path.join(log, name)).split(b"\n")):
            action = json.loads(line)
            live.pop(action.get("remove", {}).get("path"), None)
            if "add" in action:
                live[action["add"]["path"]] = 1
    return ", ".join(quoted(os.path.join(folder, unquote(path))) for path in live)

COLUMNS = 'metric, asset, "interval", currency, exchange, network'
MACROS = """CREATE MACRO ms(x) AS (epoch_us(x) + 999) // 1000;
  CREATE MACRO bits(x) AS hex(CAST(CAST(CAST(x AS DOUBLE) AS BIT) AS BLOB))"""
# A point as ../proof.md tells it: its text, and its record.
RECORDS = """(
  SELECT *, bits(ms(t)) || bits(coalesce(v, 'nan')) || bits(ms(available_at)) || bits(8 * strlen(rest)
    + list_position(['provider', 'observed', 'stated', 'assumed', 'override'], basis) - 1) AS record
  FROM (SELECT *, strftime(make_timestamp(epoch_us(t)), '%Y-%m') AS month, ms(observed_at) AS seen, concat_ws(' ',
    CASE WHEN basis <> 'provider' OR ms(computed_at) <> ms(available_at) THEN 'c' || ms(computed_at) END,
    CASE WHEN ms(available_rule_at) <> ms(available_at) THEN 'r' || ms(available_rule_at) END,
    'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra) AS rest FROM {}))"""

def check_tables(folder, told, rows):
    """Digests the published points of every series that it names, as they were when its entry was committed."""
    series = [one for group in told["state"]["members"] for one in group["members"] if "series" in one]
    files = delta_files(os.path.join(folder, "points"), rows)
    wanted = ", ".join(sorted({quoted(one["series"][0]) for one in series}))
    until = -(-count_of(told["entry"]["committed_at"]) // 1000)
    found = {}
    rows(MACROS)
    records = RECORDS.format(f"read_parquet([{files}]) WHERE metric IN ({wanted})")
    for *own, month, seen, n, digest in rows(f"""
            SELECT {COLUMNS}, month, seen, count(*), sha256(unhex(string_agg(record, '' ORDER BY record, rest))
              || encode(string_agg(rest, '' ORDER BY record, rest)))
            FROM {records} WHERE seen <= {until}
            GROUP BY {COLUMNS}, month, seen ORDER BY month, seen""") if files and wanted else []:
        points, chain = found.setdefault(tuple(own), {}).get(month, (0, ""))
        found[tuple(own)][month] = (points + n, "b" + sha256(f"{chain}\n{seen} {n} {digest}").hex())
    for one in series:
        own = found.get(tuple(one["series"]), {})
        months = [(month, f"{points} {chain}") for month, (points, chain) in own.items()]
        must(tree_of(months) == one["value"], f"the points of {one['name']} are not those that the state tells")
    return f"{len(series)} series digested anew"

def check_result(folders, told, rows):
    """The result beside the certificate, or in the folder of the tables: its figure once more."""
    for path in (os.path.join(folder, name) for folder in folders for name in os.listdir(folder) if ".par" in name):
        if sha256(read(path)).hex() != told["result"]["file_sha256"]:
            continue
        if told["figure"] is None:
            return "the result is the one"
        rows(f"CREATE TEMP TABLE result AS FROM read_parquet({quoted(path)})")
        rows("SET enable_external_access = false")  # The figure's words are a stranger's.
        again = rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({told['figure']['sql']}\n)")[0]
        must(list(again) == list(told["figure"]["values"].values()), "the figure is another")
        return "the figure comes again"
    return "the result is not at hand"

def main(words):
    files, asked, words = [], {}, iter(words)
    for word in words:
        if word in ("--key", "--head", "--tables"):
            asked[word[2:]] = next(words)
        else:
            files.append(word)
    for name in ("key", "head"):
        if name in asked and (name == "head" or os.path.exists(asked[name])):
            asked[name] = read(asked[name]).decode() if name == "head" else read(asked[name]).decode().strip()
    code = 0 if files else 4
    for file in files:
        try:
            told, head, stamps = check(file, asked)
            who = "your key" if "key" in asked else "its own key, which nobody named"
            others = f", also by {', '.join(head['others'])} (not checked)" if head["others"] else ""
            version = told["knowledge"]["version"]
            more = [f"valid {file}: version {version} of {head['origin']}, by {who}{others}", *stamps]
            if "tables" in asked:
                import duckdb  # Only who asks for it needs it.
                connection = duckdb.connect(":memory:")
                rows = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
                more.append(check_tables(asked["tables"], told, rows))
                more.append(check_result([os.path.dirname(file) or ".", asked["tables"]], told, rows))
            print("; ".join(more))
        except Exception as error:  # Whatever it is, it is not valid.
            code = 4
            why = error if isinstance(error, Refused) else f"it cannot be read ({type(error).__name__}: {error})"
            print(f"not valid {file}: {' '.join(str(why).split())}")
    return code

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
