#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "commands.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/little_endian.h"
#include "network_path.client.h"

namespace lrpc::tools {
namespace {

namespace wire = lrpc::netpath::NetworkPath;

constexpr std::chrono::milliseconds kNetworkTime{10'000};

struct Row {
  std::string binding;  ///< NAME@GROUP
  std::uint32_t user = 0;
  std::string member;
  std::string state;
};

std::string text_of(shim::ByteReader& reader) {
  const auto bytes = reader.take(reader.number<std::uint8_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends the bindings in one answer of NetworkPath.Groups to `rows`. Returns the last one's number; 0 if the answer
/// is malformed.
std::uint64_t take(std::span<const std::byte> answer, std::vector<Row>& rows) {
  shim::ByteReader reader(answer);
  std::uint64_t number = 0;
  while (reader.left() != 0) {
    const auto next = reader.number<std::uint64_t>();
    reader.check(next > number);
    number = next;
    Row row;
    row.user = reader.number<std::uint32_t>();
    const std::string group = text_of(reader);
    row.binding = text_of(reader) + "@" + group;
    const auto members = reader.number<std::uint8_t>();
    for (std::size_t i = 0; i < members && reader.good(); ++i) {
      row.member = GroupMember{reader.number<std::uint32_t>()}.str();
      const bool bound = reader.number<std::uint8_t>() != 0;
      const std::string why = text_of(reader);
      row.state = bound ? "bound" : why.empty() ? "not bound" : "not bound: " + why;
      rows.push_back(row);
    }
  }
  return reader.good() ? number : 0;
}

}  // namespace

int list_groups(const std::string& nameserver) {
  ImportOptions options;
  options.nameserver = nameserver;
  options.call_timeout = kNetworkTime;
  auto network = wire::Client::import(shim::kNetworkName, options);
  if (network.code() == Errc::name_unknown)
    return complain({Errc::remote_unavailable, "no lrpc-netd here: no binding leads to a group of hosts"});
  if (!network) return complain(network.error());
  std::vector<Row> rows;
  std::vector<std::byte> room(wire::layout::kGroups_bindings.bound);
  for (std::uint64_t after = 0;;) {
    Buffer bindings(room);
    if (const auto asked = network->Groups(after, bindings); !asked) return complain(asked.error());
    if (bindings.size() == 0) break;
    const std::uint64_t last = take(bindings.contents(), rows);
    if (last <= after) return complain({Errc::bad_message, "the answer of lrpc-netd makes no sense"});
    after = last;
  }
  std::size_t widest_binding = 7;
  std::size_t widest_member = 6;
  for (const Row& row : rows) {
    widest_binding = std::max(widest_binding, row.binding.size());
    widest_member = std::max(widest_member, row.member.size());
  }
  fmt::print("{:{}}  {:>5}  {:{}}  {}\n", "BINDING", widest_binding, "UID", "MEMBER", widest_member, "STATE");
  for (const Row& row : rows)
    fmt::print("{:{}}  {:>5}  {:{}}  {}\n", row.binding, widest_binding, row.user, row.member, widest_member,
               row.state);
  return 0;
}

}  // namespace lrpc::tools
