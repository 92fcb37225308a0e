-- SPDX-License-Identifier: GPL-2.0-or-later
-- For wrk: asks for /DIRECTORY/0, /DIRECTORY/1, ... in turn, and ends with one line "RESULT {json}".
-- wrk -s wrk.lua URL -- DIRECTORY COUNT close|keep-alive

local requests = {}
local number = 0

function init(args)
   local directory, count, connection = args[1], tonumber(args[2]), args[3]
   if connection == "close" then
      wrk.headers["Connection"] = "close"
   end
   for i = 1, count do
      requests[i] = wrk.format("GET", string.format("/%s/%d", directory, i - 1))
   end
   -- Threads must not march through the targets side by side.
   math.randomseed(tonumber(tostring({}):sub(8)) or os.time())
   number = math.random(count)
end

function request()
   number = number % #requests + 1
   return requests[number]
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      'RESULT {"requests": %d, "duration_us": %d, "bytes": %d, "connect": %d, "read": %d, "write": %d, ' ..
      '"timeout": %d, "status": %d, "p50_us": %d, "p90_us": %d, "p99_us": %d, "max_us": %d}\n',
      summary.requests, summary.duration, summary.bytes, errors.connect, errors.read, errors.write,
      errors.timeout, errors.status, latency:percentile(50), latency:percentile(90), latency:percentile(99),
      latency.max))
end
