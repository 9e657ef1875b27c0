/**
 * Rates with bursts on the store's clock: the generic cell rate algorithm, several rates together or not at all.
 *
 *     KEYS  one for each rate, all in one slot; each holds its theoretical arrival time (TAT), µs
 *     ARGV  'take', 'settle' or 'peek'; then for each key its cost and its burst as spans, µs
 *     reply '1' or '0', µs until a refused take would pass, then for each key the span that is left
 *
 * A cost is a span: cost · period / limit, rounded up by the caller, so that everything here is an integer below 2^53.
 * Invariant: over any span of time what is taken costs at most burst + span, plus what settling charged later.
 * Source: ITU-T I.371, the virtual scheduling algorithm.
 */
import { finiteText } from '../store/script.js';

export const budgetScript: string = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function text(number) return string.format('%.0f', number) end
${finiteText}local mode = ARGV[1]
local tats, wait = {}, 0
for i, key in ipairs(KEYS) do
  local cost, burst = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local tat = finite(redis.call('GET', key) or 0)
  if mode == 'settle' and cost < 0 then
    tats[i] = math.max(now, tat + cost)
  elseif mode == 'peek' then
    tats[i] = math.max(tat, now)
  else
    tats[i] = math.max(tat, now) + cost
  end
  if mode == 'take' and cost > 0 then wait = math.max(wait, tats[i] - burst - now) end
end
local reply = { wait > 0 and '0' or '1', text(wait) }
for i, key in ipairs(KEYS) do
  local cost, burst = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local tat = tats[i]
  if wait > 0 then tat = tat - cost end
  if wait == 0 and mode ~= 'peek' then
    if tat > now then
      redis.call('SET', key, text(tat), 'PX', text(math.ceil((tat - now) / 1000)))
    else
      redis.call('DEL', key)
    end
  end
  reply[#reply + 1] = text(burst + now - tat)
end
return reply
`;
