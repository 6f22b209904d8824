-- Learn from an answer. KEYS: state, permits. ARGV: response ms or '', failed, throttled, smoothing, ttl ms
-- Answers the new state: last, blocked, response, failures, backoffs, permits out.
local state, permits = KEYS[1], KEYS[2]
local known = redis.call('HMGET', state, 'response', 'failures', 'backoffs')
local response, failures, backoffs = number(known[1], 0), number(known[2], 0), number(known[3], 0)
local failed, throttled, smoothing = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
if ARGV[1] ~= '' then
  local seen = tonumber(ARGV[1])
  if response <= 0 then response = seen else response = (1 - smoothing) * response + smoothing * seen end
end
if throttled then backoffs = backoffs + 1 elseif not failed then backoffs = math.max(0, backoffs - 1) end
if failed then failures = failures + 1 else failures = 0 end
redis.call('HSET', state, 'response', string.format('%.17g', response), 'failures', failures, 'backoffs', backoffs)
if redis.call('PTTL', state) < tonumber(ARGV[5]) then redis.call('PEXPIRE', state, ARGV[5]) end
local told = redis.call('HMGET', state, 'last', 'blocked', 'response', 'failures', 'backoffs')
told[6] = redis.call('ZCARD', permits)
return told
