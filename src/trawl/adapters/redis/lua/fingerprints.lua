-- What the scripts of the fingerprint index share: where things lie, and how a record is packed.
--
-- A document is a field of one of 65,536 hashes, so small that Redis keeps them compact (listpacks):
--   sequence 5, space 4, fetched at 6, flags 1, request key 8, fetch id 8, SHA-256 32, SimHash 8,
--   [SHA-256 32, SimHash 8 of the version before,] URL
-- Its SHA-256 is a field of another such hash, and each of its bands, or pairs of blocks, one of a third kind, whose
-- value is a row of entries of 16 bytes: SimHash 8, document key 8. The space, a number for namespace and version, is
-- mixed into the place of a band, so that spaces do not meet.

local COMMITTED, DIRECT, NEAR, PREVIOUS = 1, 2, 4, 8
local KINDS = {[0] = 'new', [16] = 'changed', [32] = 'unchanged'}
local CODES = {new = 0, changed = 16, unchanged = 32}
local HEAD = '>I5I4I6I1c8c8c32c8'
local HEAD_BYTES = 72
-- how many bits of a byte are set
local SET = ''
  .. '\0\1\1\2\1\2\2\3\1\2\2\3\2\3\3\4\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6'
  .. '\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7'
  .. '\1\2\2\3\2\3\3\4\2\3\3\4\3\4\4\5\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7'
  .. '\2\3\3\4\3\4\4\5\3\4\4\5\4\5\5\6\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7\3\4\4\5\4\5\5\6\4\5\5\6\5\6\6\7\4\5\5\6\5\6\6\7\5\6\6\7\6\7\7\8'

local function two(text, at) return string.byte(text, at) * 256 + string.byte(text, at + 1) end

local function document_place(prefix, key) return prefix .. 'd:' .. two(key, 7), key end

local function text_place(prefix, space, sha)
  return prefix .. 's:' .. two(sha, 1), struct.pack('>I4', space) .. string.sub(sha, 3, 10)
end

local function block(simhash, number)
  local offset = number * 13
  local width = number == 4 and 12 or 13
  local first = (offset - offset % 8) / 8 + 1
  local a, b, c = string.byte(simhash, first, first + 2)
  local bits = ((a or 0) * 65536 + (b or 0) * 256 + (c or 0)) % 2 ^ (24 - offset % 8)
  return math.floor(bits / 2 ^ (24 - offset % 8 - width))
end

-- The places of a fingerprint's entries: {hash, field, hash, field, ...}
local function band_places(prefix, tables, space, simhash)
  local places, mixed = {}, space * 40503
  if tables == 4 then
    for band = 0, 3 do
      local value = (two(simhash, 2 * band + 1) + mixed) % 65536
      places[#places + 1] = prefix .. 'b:' .. band .. ':' .. math.floor(value / 128)
      places[#places + 1] = string.char(value % 128)
    end
    return places
  end
  local blocks = {}
  for number = 0, 4 do blocks[number] = block(simhash, number) end
  for one = 0, 3 do
    for other = one + 1, 4 do
      local value = (blocks[one] * 8192 + blocks[other] + mixed) % 67108864
      places[#places + 1] = prefix .. 'b:' .. one .. other .. ':' .. math.floor(value / 1024)
      places[#places + 1] = struct.pack('>I2', value % 1024)
    end
  end
  return places
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

local function remove(prefix, tables, key, known)
  local hash, field = document_place(prefix, key)
  redis.call('HDEL', hash, field)
  hash, field = text_place(prefix, known.space, known.sha)
  redis.call('HDEL', hash, field)
  redis.call('HINCRBY', prefix .. 'meta', 'documents', -1)
  if not known.near then return end
  local places = band_places(prefix, tables, known.space, known.simhash)
  for place = 1, #places, 2 do
    local row = redis.call('HGET', places[place], places[place + 1]) or ''
    local kept = {}
    for at = 1, #row, 16 do
      if string.sub(row, at + 8, at + 15) ~= key then kept[#kept + 1] = string.sub(row, at, at + 15) end
    end
    if #kept > 0 then
      redis.call('HSET', places[place], places[place + 1], table.concat(kept))
    else
      redis.call('HDEL', places[place], places[place + 1])
    end
  end
end

