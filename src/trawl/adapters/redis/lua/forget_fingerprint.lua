-- The document is withdrawn, unless a newer fetch of it is stored. KEYS: meta. ARGV: prefix, tables, key, fetched at
local known = read(ARGV[1], ARGV[3])
if known and known.fetched > tonumber(ARGV[4]) then return 0 end
if known then remove(ARGV[1], tonumber(ARGV[2]), ARGV[3], known) end
return 1
