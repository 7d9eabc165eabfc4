// The loopback binding of bench.lrpc.
#pragma once

#include "bench.client.h"
#include "loopback.h"
#include "procedures.h"

namespace lrpc::bench {

using BenchLoopback = Loopback<::Bench::Client, Procedures>;

inline Result<std::unique_ptr<BenchLoopback>> make_bench_loopback(std::chrono::milliseconds call_timeout = kNoLimit) {
  return BenchLoopback::create(
      [](Server& server, UniqueFd socket, Procedures& procedures) {
        return ::Bench::serve_over(server, std::move(socket), procedures);
      },
      call_timeout);
}

}  // namespace lrpc::bench
