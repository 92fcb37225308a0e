-- SPDX-License-Identifier: GPL-2.0-or-later
-- For wrk: asks for /DIRECTORY/0, /DIRECTORY/1, ... in turn, and ends with one line "RESULT {json}".
-- wrk -s wrk.lua URL -- DIRECTORY COUNT close|keep-alive
-- wrk -s wrk.lua URL -- DIRECTORY COUNT walk SHARE NUMBERS NUMBERS...
--    Asks for targets out of lists of numbers ("3,17,20"), one list a node. A thread has a list of its own, and goes to
--    the next one for a request with probability SHARE; with SHARE "turn" it takes them in turn.
-- wrk -s wrk.lua URL -- DIRECTORY COUNT zipf EXPONENT
--    The N-th target is asked for 1 / N^EXPONENT times as often as the first.
-- With addresses in $SERVERS, threads ask these in turn, at port 80, and not the URL's.

local requests = {}
local number = 0
local lists = {}
local share
local at = 1
local threads = 0
local popularity = {}
local servers = {}

for address in (os.getenv("SERVERS") or ""):gmatch("%S+") do
   servers[#servers + 1] = address
end

function setup(thread)
   thread:set("id", threads)
   if #servers > 0 then
      thread.addr = wrk.lookup(servers[threads % #servers + 1], "80")[1]
   end
   threads = threads + 1
end

function init(args)
   local directory, count, connection = args[1], tonumber(args[2]), args[3]
   if connection == "close" then
      wrk.headers["Connection"] = "close"
   end
   for i = 1, count do
      requests[i] = wrk.format("GET", string.format("/%s/%d", directory, i - 1))
   end
   if connection == "walk" then
      share = args[4] == "turn" and "turn" or tonumber(args[4])
      for i = 5, #args do
         local list = {}
         for target in args[i]:gmatch("%d+") do
            list[#list + 1] = requests[tonumber(target) + 1]
         end
         lists[#lists + 1] = list
      end
   end
   if connection == "zipf" then
      local sum = 0
      for i = 1, count do
         sum = sum + 1 / i ^ tonumber(args[4])
         popularity[i] = sum
      end
   end
   -- Threads must not march through the targets side by side.
   math.randomseed(tonumber(tostring({}):sub(8)) or os.time())
   number = math.random(count)
   at = #lists > 0 and id % #lists + 1 or 1
end

-- The first target whose share, with those before it, reaches a random one.
local function popular()
   local wanted, low, high = math.random() * popularity[#popularity], 1, #popularity
   while low < high do
      local middle = math.floor((low + high) / 2)
      if popularity[middle] < wanted then
         low = middle + 1
      else
         high = middle
      end
   end
   return requests[low]
end

function request()
   if #popularity > 0 then
      return popular()
   end
   if share then
      local list = lists[at]
      if share == "turn" then
         at = at % #lists + 1
      elseif math.random() < share then
         list = lists[at % #lists + 1]
      end
      return list[math.random(#list)]
   end
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
