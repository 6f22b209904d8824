-- The document of that fetch is indexed. KEYS: meta. ARGV: prefix, document key, fetch id
local known = read(ARGV[1], ARGV[2])
if known and known.fetch == ARGV[3] and not known.committed then
  known.committed = true
  write(ARGV[1], ARGV[2], known)
end
return 1
