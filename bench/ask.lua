-- What wrk sends: a path in which %d is another number each time, at most so many a second, and figures as JSON.
-- Arguments: path, first number, requests a second of each connection (0: as fast as answers come), If-None-Match.

local threads = 0

function setup(thread)
   thread:set("number", threads * 1000000)
   threads = threads + 1
end

function init(arguments)
   path = arguments[1]
   number = number + tonumber(arguments[2])
   pause_ms = tonumber(arguments[3]) > 0 and 1000 / tonumber(arguments[3]) or 0
   if arguments[4] then
      wrk.headers["If-None-Match"] = arguments[4]
   end
end

function delay()
   return pause_ms
end

function request()
   number = number + 1
   return wrk.format("GET", (path:gsub("%%d", number)))
end

function done(summary, latency, requests)
   local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
   io.write(string.format(
      '{"answers":%d,"seconds":%f,"failed":%d,"median_ms":%f,"p99_ms":%f}\n',
      summary.requests, summary.duration / 1e6, failed, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
   ))
end
