-- What the scripts of the fingerprint index share: where things lie, and how a record is packed.
--
-- A document is a field of one of 32,768 hashes, so small that Redis keeps them compact (listpacks):
--   sequence 5, space 4, fetched at 6, flags 1, request key 8, fetch id 8, SHA-256 32, SimHash 8,
--   [SHA-256 32, SimHash 8 of the version before,] packed URL
-- Texts and bands, or pairs of blocks, are rows: fields of other such hashes, each with the entries of all documents of
-- one value. The space, a number for namespace and version, is mixed into the value, so that spaces hardly meet; the
-- record decides.
--   row of a text, by two bytes of its SHA-256: three more of its bytes, document key 8
--   row of the first table: SimHash 8 (6 of it where the row tells two), document key 8
--   row of any other table: the first bytes of the SimHash. They lead to a row of the first table, which is looked at if
--   they differ in few enough bits.

local COMMITTED, DIRECT, NEAR, PREVIOUS = 1, 2, 4, 8
local KINDS = {[0] = 'new', [16] = 'changed', [32] = 'unchanged'}
local CODES = {new = 0, changed = 16, unchanged = 32}
local HEAD = '>I5I4I6I1c8c8c32c8'
local HEAD_BYTES = 72
-- A row takes no more entries, ten times those of 100 million documents: so many of one value come from a trap, or from
-- somebody who wants the server to be slow. Some duplicates of such documents are missed.
local ROW_ENTRIES_MAX = 16384
-- how many bits of a byte are set
local SET = ''
  .. '\0\1\1\2\1\2\2\3\1\2\2\3\2\3\3\4\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6'
  .. '\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7'
  .. '\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7'
  .. '\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7\4\5\5\6\5\6\6\7\5\6\6\7\6\7\7\8'

local function two(text, at) return string.byte(text, at) * 256 + string.byte(text, at + 1) end

-- The row of a 16-bit value: {hash, field}
local function row_of_two(prefix, name, value)
  return {prefix .. name .. math.floor(value / 128), string.char(value % 128)}
end

-- The rows that this script has read, as they are now
local rows_read = {}

local function get_row(row)
  local place = row[1] .. row[2]
  local entries = rows_read[place]
  if not entries then
    entries = redis.call('HGET', row[1], row[2]) or ''
    rows_read[place] = entries
  end
  return entries
end

local function set_row(row, entries)
  rows_read[row[1] .. row[2]] = entries
  if entries == '' then
    redis.call('HDEL', row[1], row[2])
  else
    redis.call('HSET', row[1], row[2], entries)
  end
end

local function add_entry(row, entry)
  local entries = get_row(row)
  if #entries < ROW_ENTRIES_MAX * #entry then set_row(row, entries .. entry) end
end

-- Take one entry out whose bytes from an offset on are these
local function remove_entry(row, size, offset, bytes)
  local entries = get_row(row)
  for at = 1, #entries, size do
    if string.sub(entries, at + offset, at + offset + #bytes - 1) == bytes then
      set_row(row, string.sub(entries, 1, at - 1) .. string.sub(entries, at + size))
      return
    end
  end
end

local TEXT_BYTES = 11

local function text_row(prefix, space, sha)
  return row_of_two(prefix, 'x:', (two(sha, 1) + space * 40503) % 65536), string.sub(sha, 3, 5)
end

-- How many bytes of a SimHash lead to its row of the first table, and how many of them such a row leaves out
local LEAD = {[4] = 3, [10] = 4}
local TOLD = {[4] = 2, [10] = 0}

local function block(simhash, number)
  local offset = number * 13
  local width = number == 4 and 12 or 13
  local first = (offset - offset % 8) / 8 + 1
  local a, b, c = string.byte(simhash, first, first + 2)
  local bits = ((a or 0) * 65536 + (b or 0) * 256 + (c or 0)) % 2 ^ (24 - offset % 8)
  return math.floor(bits / 2 ^ (24 - offset % 8 - width))
end

local function pair_row(prefix, space, simhash, one, other)
  local value = (block(simhash, one) * 8192 + block(simhash, other) + space * 40503) % 67108864
  return {prefix .. 'b:' .. one .. other .. ':' .. math.floor(value / 1024), struct.pack('>I2', value % 1024)}
end

-- The row of the first table; the first bytes of the SimHash suffice
local function first_row(prefix, tables, space, simhash)
  if tables == 10 then return pair_row(prefix, space, simhash, 0, 1) end
  return row_of_two(prefix, 'b:0:', (two(simhash, 1) + space * 40503) % 65536)
end

local function other_rows(prefix, tables, space, simhash)
  local rows = {}
  if tables == 10 then
    for one = 0, 3 do
      for other = one + 1, 4 do
        if other > 1 then rows[#rows + 1] = pair_row(prefix, space, simhash, one, other) end
      end
    end
    return rows
  end
  for band = 1, 3 do
    local value = (two(simhash, 2 * band + 1) + space * 40503) % 65536
    rows[band] = row_of_two(prefix, 'b:' .. band .. ':', value)
  end
  return rows
end

local function document_place(prefix, key)
  return prefix .. 'd:' .. two(key, 7) % 32768, string.sub(key, 1, 7)
end

local function unpacked(record)
  local known = {}
  known.sequence, known.space, known.fetched, known.flags, known.request, known.fetch, known.sha, known.simhash =
    struct.unpack(HEAD, record)
  local at = HEAD_BYTES + 1
  if bit.band(known.flags, PREVIOUS) ~= 0 then
    known.old_sha, known.old_simhash = string.sub(record, at, at + 31), string.sub(record, at + 32, at + 39)
    at = at + 40
  end
  known.url = string.sub(record, at)
  known.kind = KINDS[bit.band(known.flags, 48)]
  known.committed = bit.band(known.flags, COMMITTED) ~= 0
  known.direct = bit.band(known.flags, DIRECT) ~= 0
  known.near = bit.band(known.flags, NEAR) ~= 0
  return known
end

local function packed(known)
  local flags = CODES[known.kind] + (known.committed and COMMITTED or 0) + (known.direct and DIRECT or 0)
    + (known.near and NEAR or 0) + (known.old_sha and PREVIOUS or 0)
  return struct.pack(HEAD, known.sequence, known.space, known.fetched, flags, known.request, known.fetch, known.sha,
    known.simhash) .. (known.old_sha and known.old_sha .. known.old_simhash or '') .. known.url
end

local function read(prefix, key)
  local hash, field = document_place(prefix, key)
  local record = redis.call('HGET', hash, field)
  return record and unpacked(record)
end

local function write(prefix, key, known)
  local hash, field = document_place(prefix, key)
  redis.call('HSET', hash, field, packed(known))
end

local function add(prefix, tables, key, known)
  write(prefix, key, known)
  redis.call('HINCRBY', prefix .. 'meta', 'documents', 1)
  local row, bytes = text_row(prefix, known.space, known.sha)
  add_entry(row, bytes .. key)
  if not known.near then return end
  add_entry(first_row(prefix, tables, known.space, known.simhash), string.sub(known.simhash, TOLD[tables] + 1) .. key)
  local lead = string.sub(known.simhash, 1, LEAD[tables])
  for _, other in ipairs(other_rows(prefix, tables, known.space, known.simhash)) do add_entry(other, lead) end
end

local function remove(prefix, tables, key, known)
  local hash, field = document_place(prefix, key)
  redis.call('HDEL', hash, field)
  redis.call('HINCRBY', prefix .. 'meta', 'documents', -1)
  remove_entry(text_row(prefix, known.space, known.sha), TEXT_BYTES, TEXT_BYTES - 8, key)
  if not known.near then return end
  local size = 16 - TOLD[tables]
  remove_entry(first_row(prefix, tables, known.space, known.simhash), size, size - 8, key)
  local lead = string.sub(known.simhash, 1, LEAD[tables])
  for _, other in ipairs(other_rows(prefix, tables, known.space, known.simhash)) do
    remove_entry(other, #lead, 0, lead)
  end
end

-- Fetches of a document from before a time are stale from now on; only so many documents are remembered
local function withdraw(prefix, key, not_before, most)
  local gone = prefix .. 'withdrawn'
  redis.call('ZADD', gone, 'GT', string.format('%.0f', not_before), key)
  local extra = redis.call('ZCARD', gone) - most
  if extra > 0 then redis.call('ZPOPMIN', gone, extra) end
end

