"""Checks certificates of pitlake without pitlake; ../proof.md tells their format, and what they prove.

    python3 verify_certificate.py CERTIFICATE... [--key PUBLIC] [--head FILE] [--tables DIR]

prints a line each: valid (exit 0), or not and why (exit 4). --key: the public key, or its file, as its owner gave it to
you by another way, else the certificate's own. --head: a head that you kept. --tables: published tables, which DuckDB
(package duckdb) digests anew; the result beside the certificate gives its figure again.
"""
import base64, hashlib, json, os, re, sys  # noqa: E401
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
    text, others, signed = note[: at + 1], [], []
    for line in note[at + 2 : -1].split("\n"):
        form = re.fullmatch(r"— ([!-*,-~]+) ([A-Za-z0-9+/]+={0,2})", line)
        who, told = must(form, f"{what} has no such signature").groups()
        data = unbase64(told, f"a signature of {what}")
        if who != name or data[:4].hex() != own:
            others.append(who)
        else:
            signed.append(len(data) == 68 and is_signed(point, text.encode(), data[4:]))
    must(all(signed), f"the signature of {what} is wrong")
    must(signed, f"{what} is not signed by {name}")
    return text, others
def read_head(note, key, what):
    text, others = signed_text(must(is_text(note) and note, f"there is no {what}"), key, what)
    form = re.fullmatch(r"([!-~]+)\n(0|[1-9][0-9]{0,8})\n([A-Za-z0-9+/]{43}=)\n", text)
    origin, size, told = must(form, f"{what} is no checkpoint").groups()
    return {"origin": origin, "size": int(size), "root": unbase64(told, what).hex(), "others": others}
# --- trees of RFC 6962: a leaf is hashed behind 0, a node behind 1; left stands the largest power of two below n
def leaf_of(text):
    return sha256(b"\x00" + text.encode())
def node_of(left, right):
    return sha256(b"\x01" + left + right)
def split(n):
    return 1 << ((n - 1).bit_length() - 1)
def taken(proof, at, what):
    """The next hash of a proof, from its end (-1) or its beginning (0)."""
    must(proof, f"{what} is too short")
    return proof.pop(at)
def from_both(older, newer, root, proof):
    """The roots of the older and the newer tree to which a consistency proof leads."""
    def rise(m, n, whole):
        if m == n:
            return (bytes.fromhex(root) if whole else taken(proof, -1, "a proof of consistency"),) * 2
        left, other = split(n), taken(proof, -1, "a proof of consistency")
        old, now = rise(m, left, whole) if m <= left else rise(m - left, n - left, False)
        return (old, node_of(now, other)) if m <= left else (node_of(other, old), node_of(other, now))
    old, now = rise(older, newer, True)
    must(not proof, "a proof of consistency is too long")
    return old.hex(), now.hex()
def from_some(size, known, told, what, at=0):
    """The root of a tree of which some leaves are known; the proof tells the rest from the left, or (-1) upwards."""
    proof = proof_of(told, what)
    def has(begin, n):
        return any(begin <= index < begin + n for index in known)
    def rise(begin, n):
        if not has(begin, n) or n == 1:
            return known[begin] if begin in known else taken(proof, at, what)
        left = split(n)
        right = taken(proof, at, what) if at == -1 and not has(begin + left, n - left) else None
        return node_of(rise(begin, left), right or rise(begin + left, n - left))
    root = sha256(b"") if size == 0 else rise(0, size)
    must(not proof, f"{what} is too long")
    return root.hex()
def proven_members(value, tree, what):
    """Members of a tree of named values, once they are proved: its value tells how many it has, and its root."""
    form = is_text(value) and re.fullmatch(r"(0|[1-9][0-9]{0,8}) ([0-9a-f]{64})", value)
    size, root = must(form, f"{what} is no tree").groups()
    members, known, last = tree["members"], {}, -1
    must(isinstance(members, list) and members, f"{what} proves nothing")
    for member in members:
        index, name, own = count_of(member["index"]), member["name"], member["value"]
        follows = index is not None and last < index < int(size)
        must(follows and is_text(name) and is_text(own) and "\n" not in own, f"{what} has a member that cannot be")
        known[index], last = leaf_of(f"{name}\n{own}"), index
    must(from_some(int(size), known, tree["proof"], f"the proof of {what}") == root, f"{what} has another root")
    return members
def tree_of(members):
    """The value of a tree over all of its named values."""
    must(all(is_text(name) and is_text(value) for name, value in members), "names and values are no texts")
    known = {index: leaf_of(f"{name}\n{value}") for index, (name, value) in enumerate(members)}
    return f"{len(known)} {from_some(len(known), known, [], 'a tree')}"
def check(file, asked):
    text = read(file).decode()
    at = text.rfind(',\n"signature": ')
    told = strict_json(must(at >= 0 and text, "there is no signature"))
    signature, own = told.get("signature"), told.get("public")
    end = f',\n"signature": {json.dumps(signature, ensure_ascii=False)}\n}}\n'
    must(text[at:] == end, "the signature is not the end")
    form = (count_of(told.get("pitlake_certificate")), told.get("algorithms"))
    must(form == (1, "sha256 ed25519"), "a form or algorithms not known here")
    must(is_text(own) and asked.get("key", own) == own, "it was signed by another key than yours")
    key = read_key(own)
    body = f"pitlake certificate\nsha256 {sha256(text[:at]).hex()}\n"
    must(signed_text(signature, key, "the certificate")[0] == body, "a byte of it changed since it was signed")
    head = read_head(told.get("head"), key, "the head")
    entry = told["entry"]
    digest, state = entry["sha256"], entry["state"]
    index, version, when = (count_of(entry[name]) for name in ("index", "version", "committed_at"))
    counts = (index, version, when, count_of(told["knowledge"]["version"]))
    right = None not in counts and index < head["size"] and counts[3] <= version and is_hash(digest) and is_text(state)
    must(right, "the entry is none of the log, or too early")
    leaf = leaf_of(f"pitlake entry\nversion {version}\ncommitted_at {when}\nsha256 {digest}\nstate {state}\n")
    root = from_some(head["size"], {index: leaf}, entry["inclusion"], "the proof of the entry", -1)
    must(root == head["root"], "the entry does not lead to the head")
    kept = "head" in asked and read_head(asked["head"], key, "the head that you kept")
    heads = check_heads(told.get("consistency"), head, kept)
    proved = check_state(told, state, proven_members(state, told.get("state"), "the state"))
    stamps = told.get("time_stamps", [])
    must(isinstance(stamps, list), "the time stamps are no list")
    return told, head, proved, [stamp_of(one, heads, key) for one in stamps]
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
    if not kept:
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
    return (f"time stamp of {size} entries (not checked): base64 -d > {size}.tsr <<< {reply}"
        f" && openssl ts -verify -digest {digest} -in {size}.tsr -CAfile CA.pem")
def member_of(value, members, name, why):
    """The member of a name; None where two neighbours show that a tree, sorted as it is, has none."""
    places = [(-1, ""), *((one["index"], one["name"]) for one in members), (int(value.split()[0]), "\U0010ffff")]
    lacks = any(at + 1 == behind and one < name < next for (at, one), (behind, next) in zip(places, places[1:]))
    found = next((one for one in members if one["name"] == name), None)
    must(found or lacks, why)
    return found
def check_state(told, state, groups):
    """What it says of series, tables, rules, the query and tries is what the state tells; gives what was proved."""
    def find(name, member, why):
        group = member_of(state, groups, name, why)
        found = group and member_of(group["value"], group["members"], member, why)
        return found and must(found.get("text"), why)
    for group in groups:
        members = proven_members(group["value"], group, f"the group {group['name']}")
        for one in members:
            name, value, series = one["name"], one["value"], one.get("series")
            if "text" in one:
                must(is_text(one["text"]) and sha256(one["text"]).hex() == value, f"the text of {name} is not in force")
            if "months" in one:
                must(tree_of(one["months"]) == value, f"the months of {name} are not those of the state")
            if group["name"].startswith("series "):
                own = [unquote(part) for part in name.split("|")]
                same = ((part or "") == own[n] or (n == 2 and own[n] == "") for n, part in enumerate(series or []))
                right = len(series or []) == 6 and all(same) and group["name"] == f"series {own[0]}"
                must(right, f"{name} is not the series that it says")
                find("rules", own[0], f"the rules of {name} are not shown")
        some = len(members) < int(group["value"].split()[0]) and re.match("registry$|series ", group["name"])
        free = told["reads"]["complete"] is True or (not some and len(groups) == int(state.split()[0]))
        must(free, "nobody knows what was read, and not all is shown")
    query, tries, until = told["query"], told["tries"], count_of(told["knowledge"]["version"])
    must(is_text(query["text"]) and sha256(query["text"]).hex() == query["sha256"], "the query has another digest")
    tried = find("state", "tries", "nothing shows how many were tried")
    named = strict_json(tried or '{"queries":[]}')["queries"]
    must(count_of(tries["count"]) == len(named), "the count of tries is not that of the state")
    own = [one["version"] for one in named if one["sha256"] == query["sha256"] and one["version"] <= until]
    must(tries["named_in"] is None or tries["named_in"] in own, "the query was not named when it says")
    return [[one for group in groups if group["name"].startswith(name) for one in group["members"]]
        for name in ("series ", "registry")]
# --- with DuckDB: what the published tables hold, and the figure
def quoted(text):
    return "'" + text.replace("'", "''") + "'"
def published(folder, rows):
    """The rows of a Delta table, by its log; None where it has none."""
    log, live = os.path.join(folder, "_delta_log"), {}
    for name in sorted(os.listdir(log)):
        path = os.path.join(log, name)
        if re.fullmatch(r"[0-9]{20}\.checkpoint\.parquet", name):
            live, sql = {}, f"SELECT CAST(to_json({{add: add, protocol: protocol}}) AS VARCHAR) FROM {quoted(path)}"
            lines = [line for (line,) in rows(sql)]
        else:
            lines = read(path).split(b"\n") if re.fullmatch(r"[0-9]{20}\.json", name) else []
        for action in map(json.loads, filter(None, lines)):
            add, remove, protocol = (action.get(key) or {} for key in ("add", "remove", "protocol"))
            # Later forms of tables leave out rows that stand in files, and a path with other signs may be a pattern.
            known = all(re.fullmatch(r"(?!.*\.\.)\w[\w./-]*", one["path"], re.A) for one in (add, remove) if one)
            must(known and protocol.get("minReaderVersion", 1) == 1, "a form of tables not known here")
            live.pop(remove.get("path"), None)
            live.update({add["path"]: 1} if add else {})
    files = ", ".join(quoted(os.path.join(folder, path)) for path in live)
    return f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)" if live else None
MACROS = """SET TimeZone = 'UTC'; CREATE MACRO ms(x) AS (epoch_us(x) + 999) // 1000;
  CREATE MACRO bits(x) AS hex(CAST(CAST(CAST(x AS DOUBLE) AS BIT) AS BLOB));
  CREATE MACRO line(x) AS CAST(to_json(list_sort(list_filter(map_entries(from_json(to_json(x),
    '"MAP(VARCHAR, VARCHAR)"')), lambda pair: pair.value IS NOT NULL))) AS VARCHAR)"""
# Points as ../proof.md tells them: of each its series, month and instant, text and record.
POINTS = """(SELECT [metric, asset, "interval", currency, exchange, network] AS own, part,
    seen, rest, bits(ms(t)) || CASE WHEN v IS NULL THEN bits('nan') WHEN NOT isnan(v) THEN bits(v) END ||
    bits(ms(available_at)) || bits(8 * strlen(rest) + list_position(['provider', 'observed', 'stated', 'assumed',
      'override'], basis) - 1) AS record
  FROM (SELECT *, strftime(make_timestamp(epoch_us(t)), '%Y-%m') AS part, ms(observed_at) AS seen, concat_ws(' ',
    CASE WHEN basis <> 'provider' OR ms(computed_at) <> ms(available_at) THEN 'c' || ms(computed_at) END,
    CASE WHEN ms(available_rule_at) <> ms(available_at) THEN 'r' || ms(available_rule_at) END,
    'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra) AS rest FROM {}))"""
def rows_of(name, table):
    """Rows of a table of the registry as ../proof.md tells them: of each its table, day and instant, and its record."""
    def told(at, columns):
        return f"""SELECT ['{name}'] AS own, ms({at}) AS seen, sha256(line(one)) AS record, '' AS rest,
          strftime(make_timestamp(ms({at}) * 1000), '%Y-%m-%d') AS part FROM (SELECT {columns} FROM {table}) AS one"""
    if not name.startswith("history_"):
        return f"({told('observed_at', '*')})"
    ends = f"{told('valid_to', 'id, valid_to, closed_by')} WHERE valid_to IS NOT NULL OR closed_by IS NOT NULL"
    return f"({told('valid_from', '* EXCLUDE (valid_to, closed_by)')} UNION ALL {ends})"
def digested(source, until, rows):
    """Of each series or table what came until an instant: a tree over months or days, each a chain of instants."""
    found = {}
    for own, part, value in rows(f"""
            SELECT own, part, sum(n) || ' ' || list_reduce(list(seen || ' ' || n || ' ' || digest ORDER BY seen),
              lambda chain, step: 'b' || sha256(chain || chr(10) || step), '') FROM (
            SELECT own, part, seen, count(*) AS n, sha256(unhex(string_agg(record, '' ORDER BY record, rest)) || encode(
              string_agg(rest, '' ORDER BY record, rest))) AS digest FROM {source} WHERE coalesce(seen, 0) <= {until}
            GROUP BY own, part, seen) GROUP BY own, part ORDER BY part""") if source else []:
        found.setdefault(tuple(own), []).append((part, value))
    return {own: tree_of(parts) for own, parts in found.items()}
def check_tables(folder, told, proved, rows):
    """Digests the published rows of all that it proves, as they were when its entry was committed."""
    rows(MACROS)
    def held(name, sql):
        table = published(os.path.join(folder, name), rows)
        return digested(table and sql(table), -(-count_of(told["entry"]["committed_at"]) // 1000), rows)
    series, tables = proved
    wanted = ", ".join(sorted({quoted(one["series"][0]) for one in series}))
    points = held("points", lambda all: POINTS.format(f"{all} WHERE metric IN ({wanted})")) if series else {}
    for one in series:
        right = points.get(tuple(one["series"]), tree_of([])) == one["value"]
        must(right, f"the points of {one['name']} are not those that the state tells")
    for name, one in ((one["name"], one) for one in tables):
        known = re.fullmatch(r"(history|snapshot|registry)_\w+", name, re.A)
        must(known, f"of {name} an earlier program told what nobody publishes")
        right = held(name, lambda all: rows_of(name, all)).get((name,), tree_of([])) == one["value"]
        must(right, f"the rows of {name} are not those that the state tells")
    return f"{len(series)} series and {len(tables)} tables of the registry digested anew"
def check_result(folders, told, rows):
    """The result beside the certificate, or in the folder of the tables: what it says of itself, its figure again."""
    result, figure = told["result"], told["figure"]
    for path in (os.path.join(folder, name) for folder in folders for name in os.listdir(folder) if ".par" in name):
        if sha256(read(path)).hex() != result["file_sha256"]:
            continue
        own = json.loads(rows(f"SELECT decode(value) FROM parquet_kv_metadata({quoted(path)})")[0][0])
        said = [told["query"]["text"], told["query"]["variables"], told["knowledge"]["version"]]
        stamped = [own.get(key) for key in ("query", "variables", "version", "rows", "result")]
        must([*said, result["rows"], result["rows_sha256"]] == stamped, "the result was stamped otherwise")
        if figure is None:
            return "the result is the one"
        rows(f"CREATE TEMP TABLE result AS FROM read_parquet({quoted(path)})")
        rows("SET enable_external_access = false")  # The figure's words are a stranger's.
        sql = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({figure['sql']}\n)"
        names = [name for (name, *_) in rows(f"DESCRIBE {sql}")]
        again = [list(zip(names, row)) for row in rows(sql)]
        must(again == [list(figure["values"].items())], "the figure is another")
        return "the figure comes again"
    return "the result is not at hand"
def main(words):
    files, asked, words = [], {}, iter(words)
    for word in words:
        if word in ("--key", "--head", "--tables"):
            asked[word[2:]] = next(words, "") or "(nothing)"
        else:
            files.append(word)
    code = 0 if files else 4
    for file in files:
        try:
            given = {name: asked[name] for name in asked if name != "tables"}
            for name in given:
                if name == "head" or os.path.exists(given[name]):
                    given[name] = read(given[name]).decode().strip("" if name == "head" else None)
            told, head, proved, stamps = check(file, given)
            version, entry = told["knowledge"]["version"], told["entry"]["version"]
            later = "" if entry == version else f", proved in that of {entry}"
            who = "your key" if "key" in asked else "its own key, which nobody named"
            others = f", also by {', '.join(head['others'])} (not checked)" if head["others"] else ""
            more = [f"valid {file}: version {version}{later} of {head['origin']}, by {who}{others}"]
            series, tables = map(len, proved)
            more += [f"{series} series, {tables} tables of the registry, {told['tries']['count']} tries", *stamps]
            if "tables" in asked:
                import duckdb  # Only who asks for it needs it.
                connection = duckdb.connect(":memory:")
                rows = lambda sql: connection.execute(sql).fetchall()  # noqa: E731
                more.append(check_tables(asked["tables"], told, proved, rows))
                more.append(check_result([os.path.dirname(file) or ".", asked["tables"]], told, rows))
            print("; ".join(more))
        except Exception as error:  # Whatever it is, it is not valid.
            code = 4
            why = error if isinstance(error, Refused) else f"it cannot be read ({type(error).__name__}: {error})"
            # What it says stands in words of the certificate: none of them may act on a terminal.
            print(f"not valid {file}: {re.sub('[^ -~]+', ' ', str(why))}")
    return code
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
