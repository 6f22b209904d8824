-- What a crawl may spend in this shard. ARGV[4..]: for each crawl its id, whether it is paused, its limit, whether more may
-- be had. Answers for each how many pages are charged; nothing is changed for a crawl that has never been here.
local answers = {}
for at = 4, #ARGV, 4 do
  local c = crawl_of(ARGV[at])
  if c then told(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
  answers[#answers + 1] = c and c.charged or 0
end
save()
return answers
