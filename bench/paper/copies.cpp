#include "copies.h"

#include <array>
#include <cstddef>
#include <string>

#include "calls/loopback.h"
#include "copies.client.h"
#include "copies.server.h"

#ifndef LRPC_COUNT_COPIES
#error "the copies are only counted in a build with LRPC_COUNT_COPIES"
#endif

namespace lrpc::bench {
namespace {

using Data = std::array<std::byte, 200>;

struct CopyProcedures {
  void ScalarIn(CallContext&, std::int64_t) {}
  std::int64_t ScalarOut(CallContext&) { return 1; }
  void ArrayIn(CallContext&, const Data&) {}
  void ArrayInUninterpreted(CallContext&, const Data&) {}
  Data ArrayOut(CallContext&) { return {}; }
  void BytesIn(CallContext&, std::span<const std::byte>) {}
  void BytesInUninterpreted(CallContext&, std::span<const std::byte>) {}
  void BytesOut(CallContext&, Buffer& data) { (void)data.resize(sizeof(Data)); }  // written in place
};
using CopyLoopback = Loopback<::Copies::Client, CopyProcedures>;

/// A payload's length word, which is copied with it, is far smaller, so the quotient is the number of copies of the
/// payload.
unsigned copies_of(CopyCode code, std::size_t payload) {
  return static_cast<unsigned>(copy_counters[static_cast<std::size_t>(static_cast<char>(code) - 'A')].bytes / payload);
}

template <class Call>
Status count(CopyCount& row, std::size_t payload, Call&& call) {
  copy_counters = {};
  if (const auto outcome = call(); !outcome)
    return Error{outcome.code(), std::string(row.argument) + ": " + std::string(describe(outcome.code()))};
  row.a = copies_of(CopyCode::A, payload);
  row.e = copies_of(CopyCode::E, payload);
  row.f = copies_of(CopyCode::F, payload);
  return {};
}

}  // namespace

Result<std::vector<CopyCount>> count_copies() {
  auto loopback = CopyLoopback::create([](Server& server, UniqueFd socket, CopyProcedures& procedures) {
    return ::Copies::serve_over(server, std::move(socket), procedures);
  });
  if (!loopback) return loopback.error();
  ::Copies::Client& client = (*loopback)->client();

  const Data data{};
  Data destination{};
  Buffer buffer(destination);
  std::vector<CopyCount> rows;
  Status status;
  const auto add = [&](std::string_view operation, std::string_view argument, std::size_t payload, auto&& call) {
    rows.push_back({operation, argument});
    if (status) status = count(rows.back(), payload, call);
  };
  add("call (mutable)", "array", sizeof(data), [&] { return client.ArrayInUninterpreted(data); });
  add("call (mutable)", "bytes", sizeof(data), [&] { return client.BytesInUninterpreted(data); });
  add("call (immutable)", "scalar", sizeof(std::int64_t), [&] { return client.ScalarIn(1); });
  add("call (immutable)", "array", sizeof(data), [&] { return client.ArrayIn(data); });
  add("call (immutable)", "bytes", sizeof(data), [&] { return client.BytesIn(data); });
  add("return", "scalar", sizeof(std::int64_t), [&] { return client.ScalarOut(); });
  add("return", "array", sizeof(data), [&] { return client.ArrayOut(); });
  add("return", "bytes", sizeof(data), [&] { return client.BytesOut(buffer); });
  if (!status) return status.error();
  return rows;
}

}  // namespace lrpc::bench
