-- The script's form for a server: see exchange-script.ts.
local horizon = tonumber(ARGV[1])
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now - horizon), 'LIMIT', 0, 1000)
if #old > 0 then
  redis.call('ZREM', KEYS[2], unpack(old))
  redis.call('HDEL', KEYS[1], unpack(old))
end
local reply = {}
for i = 3, 2 * tonumber(ARGV[2]) + 1, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
  reply[#reply + 1] = redis.call('HGET', KEYS[1], ARGV[i])
  redis.call('ZADD', KEYS[2], text(now), ARGV[i])
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, text(2 * horizon)) end
return reply
