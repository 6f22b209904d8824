-- The document is withdrawn, unless a newer fetch of it is stored. KEYS: meta. ARGV: prefix, tables, key, fetched at,
-- most withdrawn
local prefix, tables, key, fetched = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local known = read(prefix, key)
if known and known.fetched > fetched then return 0 end
if known then remove(prefix, tables, key, known) end
withdraw(prefix, key, fetched + 1, tonumber(ARGV[5]))
return 1
