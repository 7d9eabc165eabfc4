#include "remote_service.h"

namespace lrpc::storm {
namespace {

/// Complains if the call does not say which host it comes from: every call comes through lrpc-netd.
void expect_remote(const CallContext& context) {
  if (context.remote() == nullptr) complain("serves a remote call that does not say from which host");
}

}  // namespace

std::int32_t RemoteService::Add(CallContext& context, std::uint64_t call, std::int32_t a, std::int32_t b) {
  expect_remote(context);
  return service_.Add(context, call, a, b);
}

std::uint64_t RemoteService::Sum(CallContext& context, std::uint64_t call, std::span<const std::byte> data) {
  return service_.Sum(context, call, data);
}

void RemoteService::Fill(CallContext& context, std::uint64_t call, std::uint32_t count, std::uint8_t first,
                         Buffer& data) {
  service_.Fill(context, call, count, first, data);
}

Result<std::uint32_t, Remote::Refused> RemoteService::Check(CallContext& context, std::uint64_t call,
                                                            std::uint32_t value) {
  const auto doubled = service_.Check(context, call, value);
  if (!doubled) return raise(Remote::Refused{.call = call, .reason = 7});
  return *doubled;
}

Remote::Counter RemoteService::Open(CallContext& context, std::uint64_t call, std::int64_t start) {
  return context.grant<Remote::Counter>(service_.open(call, start));
}

std::int64_t RemoteService::Advance(CallContext& context, std::uint64_t call, Counter& counter, std::int64_t by) {
  return service_.Advance(context, call, counter, by);
}

std::int64_t RemoteService::Close(CallContext& context, std::uint64_t call, const std::shared_ptr<Counter>& counter) {
  return service_.Close(context, call, counter);
}

std::uint32_t RemoteService::Nap(CallContext& context, std::uint64_t call, std::uint32_t microseconds) {
  return service_.Nap(context, call, microseconds);
}

void RemoteService::Tell(CallContext& context, std::uint64_t call, std::uint64_t value) {
  service_.Tell(context, call, value);
}

Result<std::int32_t, Remote::Refused> RemoteService::Onward(CallContext& context, std::uint64_t call,
                                                            const String<32>& name, std::int32_t a, std::int32_t b) {
  const auto sum = service_.Through(context, call, name, 0, a, b);
  if (const auto* refused = sum.raised<Storm::Refused>())
    return raise(Remote::Refused{.call = call, .reason = refused->reason});
  if (!sum) return sum.error();
  return *sum;
}

}  // namespace lrpc::storm
