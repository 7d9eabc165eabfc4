#include "publish/local_names.h"

#include <algorithm>
#include <chrono>

#include "lrpc/detail/shim/binder/ask_nameserver.h"
#include "publish/chosen_names.h"

namespace lrpc::directory {
namespace {

constexpr std::chrono::milliseconds kLocalPatience{10'000};
/// Names of lrpcd that are read at most; not all of them are exported to the network.
constexpr std::size_t kMostListed = 65'536;

Error no_network() { return {Errc::remote_unavailable, "no lrpc-netd here: no name can be seen from other hosts"}; }

}  // namespace

Status LocalNames::list(std::vector<shim::ListedName>& names) {
  if (!socket_) {
    auto connected = shim::connect_nameserver(nameserver_, false);
    if (!connected) return connected.error();
    socket_ = *std::move(connected);
  }
  for (bool more = true; more && names.size() < kMostListed;) {
    const shim::ListRequest request{names.empty() ? std::string() : names.back().name};
    auto next = shim::ask_nameserver<shim::Listed>(socket_.get(), request, kLocalPatience);
    if (!next) {
      socket_.reset();
      return next.error();
    }
    more = next->more && !next->names.empty();
    for (auto& one : next->names) names.push_back(std::move(one));
  }
  return {};
}

Result<LocalNames::Names> LocalNames::look() {
  std::vector<shim::ListedName> all;
  if (Status listed = list(all); !listed) return listed.error();
  // lrpcd has just started: bindings still work, but servers have not exported their names again yet.
  if (std::ranges::find(all, shim::kNetworkName, &shim::ListedName::name) == all.end()) return no_network();
  if (network_ && network_->binding().revoked()) network_.reset();
  if (!network_) {
    ImportOptions options;
    options.nameserver = nameserver_;
    options.call_timeout = kLocalPatience;
    auto network = netpath::NetworkPath::Client::import(shim::kNetworkName, options);
    if (!network) return network.code() == Errc::name_unknown ? no_network() : network.error();
    network_.emplace(*std::move(network));
  }
  Names names;
  for (auto& one : all) {
    const auto asked = network_->Exports(one.name);
    if (!asked) {
      network_.reset();
      return Error{Errc::remote_unavailable, "lrpc-netd does not answer: " + asked.error().message()};
    }
    names.own = asked->address;
    if (asked->exported) names.exported.push_back(std::move(one));
  }
  names.cut = names.exported.size() > kMost;
  names.exported = choose_names(std::move(names.exported), kMost);
  return names;
}

}  // namespace lrpc::directory
