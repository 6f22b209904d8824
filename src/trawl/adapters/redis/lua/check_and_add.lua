-- Judge a document and store it unless it is a duplicate. KEYS: meta. ARGV: prefix, tables, namespace and version,
-- document key, request key, fetch id, fetched at, SHA-256, SimHash, direct, near, most bits, packed URL, most withdrawn
-- Answers {kind, duplicate of, its URL, distance, previous SHA-256, previous SimHash}.
local prefix, tables, key = ARGV[1], tonumber(ARGV[2]), ARGV[4]
local request, fetch, fetched, sha, simhash = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local direct, near, most = ARGV[10] == '1', ARGV[11] == '1', tonumber(ARGV[12])

local space = tonumber(redis.call('HGET', prefix .. 'spaces', ARGV[3]) or 0)
if space == 0 then
  space = redis.call('HINCRBY', KEYS[1], 'spaces', 1)
  redis.call('HSET', prefix .. 'spaces', ARGV[3], space)
end

local known = read(prefix, key)
if known then
  if known.request ~= request then
    local outlives = sha ~= known.sha and fetched >= known.fetched and (direct or not known.direct)
    if not outlives then return {'alias', key, known.url, 0, '', ''} end
  else
    if known.fetch == fetch and known.sha == sha then
      return {known.kind, '', '', 0, known.old_sha or '', known.old_simhash or ''}
    end
    if known.fetched > fetched then return {'stale', '', '', 0, '', ''} end
    if known.sha == sha and known.space == space and known.committed then
      known.fetch, known.fetched, known.url, known.kind = fetch, fetched, ARGV[13], 'unchanged'
      known.old_sha, known.old_simhash = known.sha, known.simhash
      write(prefix, key, known)
      return {'unchanged', '', '', 0, known.old_sha, known.old_simhash}
    end
  end
else
  local not_before = redis.call('ZSCORE', prefix .. 'withdrawn', key)
  if not_before and fetched < tonumber(not_before) then return {'stale', '', '', 0, '', ''} end
end

-- The same text
local function exact()
  local row, bytes = text_row(prefix, space, sha)
  local entries, best, best_other = get_row(row), nil, nil
  for at = 1, #entries, TEXT_BYTES do
    if string.sub(entries, at, at + 2) == bytes then
      local candidate = string.sub(entries, at + 3, at + 10)
      local other = candidate ~= key and read(prefix, candidate)
      if other and other.space == space and other.sha == sha
        and (not best or other.sequence < best_other.sequence) then
        best, best_other = candidate, other
      end
    end
  end
  return best and {'exact', best, best_other.url, 0, '', ''}
end

local best, best_key, best_other = most, nil, nil
local mine = {string.byte(simhash, 1, 8)}

-- In how many bits bytes of mine, from one on, differ from those at a place; may stop once they are too many
local function distance(first, count, entries, at)
  local bits = 0
  for byte = 0, count - 1 do
    bits = bits + string.byte(SET, bit.bxor(mine[first + byte], string.byte(entries, at + byte)) + 1)
    if bits > best then return bits end
  end
  return bits
end

-- The nearest in a row of the first table whose SimHashes begin with these bytes, as far as the row tells them
local function nearest(row, beginning)
  local told, entries = TOLD[tables], get_row(row)
  local size, before = 16 - told, distance(1, told, beginning, 1)
  for at = 1, #entries, size do
    local bits = before + distance(told + 1, 8 - told, entries, at)
    if bits <= best then
      local candidate = string.sub(entries, at + size - 8, at + size - 1)
      local other = candidate ~= key and read(prefix, candidate)
      if other and other.space == space and other.near
        and (not best_key or bits < best or other.sequence < best_other.sequence) then
        best, best_key, best_other = bits, candidate, other
      end
    end
  end
end

-- Within so many bits, the least distance, then the oldest
local function close()
  local first, seen, lead = first_row(prefix, tables, space, simhash), {}, LEAD[tables]
  seen[first[1] .. first[2]] = true
  nearest(first, simhash)
  for _, row in ipairs(other_rows(prefix, tables, space, simhash)) do
    local entries = get_row(row)
    for at = 1, #entries, lead do
      if distance(1, lead, entries, at) <= best then
        local beginning = string.sub(entries, at, at + lead - 1)
        local led = first_row(prefix, tables, space, beginning)
        if not seen[led[1] .. led[2]] then
          seen[led[1] .. led[2]] = true
          nearest(led, beginning)
        end
      end
    end
  end
  return best_key and {'near', best_key, best_other.url, best, '', ''}
end

local duplicate = exact() or near and close()
if known then remove(prefix, tables, key, known) end
if duplicate then
  if known then withdraw(prefix, key, fetched, tonumber(ARGV[14])) end
  return duplicate
end

local stored = {
  sequence = redis.call('HINCRBY', KEYS[1], 'sequence', 1), space = space, fetched = fetched, request = request,
  fetch = fetch, sha = sha, simhash = simhash, direct = direct, near = near, committed = false, url = ARGV[13],
  kind = 'new',
}
if known and known.committed then
  stored.kind, stored.old_sha, stored.old_simhash = 'changed', known.sha, known.simhash
elseif known then
  stored.kind, stored.old_sha, stored.old_simhash = known.kind, known.old_sha, known.old_simhash
else
  redis.call('ZREM', prefix .. 'withdrawn', key)
end
add(prefix, tables, key, stored)
return {stored.kind, '', '', 0, stored.old_sha or '', stored.old_simhash or ''}
