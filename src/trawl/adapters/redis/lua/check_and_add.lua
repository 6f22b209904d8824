-- Judge a document and store it unless it is a duplicate. KEYS: meta. ARGV: prefix, tables, namespace and version,
-- document key, request key, fetch id, fetched at, SHA-256, SimHash, direct, near, most bits, URL
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
end

local duplicate
local hash, field = text_place(prefix, space, sha)
local same = redis.call('HGET', hash, field)
if same and same ~= key then
  local other = read(prefix, same)
  if other and other.sha == sha then duplicate = {'exact', same, other.url, 0, '', ''} end
end

if not duplicate and near then
  local best, best_key, best_other = most + 1, nil, nil
  local places = band_places(prefix, tables, space, simhash)
  local mine = {string.byte(simhash, 1, 8)}
  local seen = {}
  for place = 1, #places, 2 do
    local row = redis.call('HGET', places[place], places[place + 1]) or ''
    for at = 1, #row, 16 do
      local distance = 0
      for byte = 1, 8 do
        distance = distance + string.byte(SET, bit.bxor(mine[byte], string.byte(row, at + byte - 1)) + 1)
        if distance > best then break end
      end
      if distance <= most and distance <= best then
        local candidate = string.sub(row, at + 8, at + 15)
        if candidate ~= key and not seen[candidate] then
          seen[candidate] = true
          local other = read(prefix, candidate)
          if other and other.space == space and other.near
            and (distance < best or other.sequence < best_other.sequence) then
            best, best_key, best_other = distance, candidate, other
          end
        end
      end
    end
  end
  if best_key then duplicate = {'near', best_key, best_other.url, best, '', ''} end
end

if known then remove(prefix, tables, key, known) end
if duplicate then return duplicate end

local stored = {
  sequence = redis.call('HINCRBY', KEYS[1], 'sequence', 1), space = space, fetched = fetched, request = request,
  fetch = fetch, sha = sha, simhash = simhash, direct = direct, near = near, committed = false, url = ARGV[13],
  kind = 'new',
}
if known and known.committed then
  stored.kind, stored.old_sha, stored.old_simhash = 'changed', known.sha, known.simhash
elseif known then
  stored.kind, stored.old_sha, stored.old_simhash = known.kind, known.old_sha, known.old_simhash
end
write(prefix, key, stored)
redis.call('HSET', hash, field, key)
redis.call('HINCRBY', KEYS[1], 'documents', 1)
if near then
  local places = band_places(prefix, tables, space, simhash)
  for place = 1, #places, 2 do
    local row = redis.call('HGET', places[place], places[place + 1]) or ''
    redis.call('HSET', places[place], places[place + 1], row .. simhash .. key)
  end
end
return {stored.kind, '', '', 0, stored.old_sha or '', stored.old_simhash or ''}
