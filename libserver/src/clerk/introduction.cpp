#include "introduction.h"

#include <utility>
#include <vector>

#include "bindings.h"
#include "lrpc/detail/shim/call/packed_image.h"

namespace lrpc::server {

shim::BinderMessage export_request(std::uint32_t number, const std::string& name, const Pdl& pdl) {
  // Descriptors that do not fit are left out: then the name cannot be called from other hosts.
  std::string descriptors = shim::encode_descriptors(pdl.procedures);
  if (descriptors.size() + pdl.text.size() > shim::kMaxExportedText) descriptors.clear();
  shim::ExportRequest request{.name = name,
                              .interface = shim::OwnedInterfaceId::of(pdl.interface),
                              .classes = {pdl.classes.begin(), pdl.classes.end()},
                              .text = std::string(pdl.text),
                              .descriptors = std::move(descriptors)};
  return {number, std::move(request), {}, {}};
}

Error why_not(const shim::BinderMessage& answer) {
  if (const auto* failed = std::get_if<shim::Failed>(&answer.body)) return {failed->code, failed->text};
  return {Errc::bad_message, "the nameserver's answer to an export makes no sense"};
}

Result<std::uint64_t> bind_introduced(Bindings& bindings, const std::shared_ptr<const ServedInterface>& interface,
                                      int nameserver, shim::BinderMessage& message) {
  auto& request = std::get<shim::BindRequest>(message.body);
  if (message.fds_lost) return Error{Errc::limit_reached, "the server is out of file descriptors"};
  std::vector<UniqueFd>& fds = message.fds;
  if (fds.size() != 3) return Error{Errc::bad_message, "a bind request without its descriptors"};
  pid_t told = 0;
  if (request.principal) {
    // The caller is on another host; the network domain only introduces it. Nothing may be granted by that domain's
    // credentials.
    request.client = {shim::kNobodyHere};
  } else {
    told = request.client.pid;
    const auto number = shim::number_of_introduced(nameserver, told, fds[1].get());
    if (!number) return number.error();
    request.client.pid = *number;
  }
  const Status allowed =
      request.principal ? authorise(*interface, *request.principal) : authorise(*interface, request.client);
  if (!allowed) return allowed.error();
  auto layout = shim::RegionLayout::of(interface->pdl->classes);
  if (!layout) return layout.error();
  if (Status room = bindings.room_for(request.client, told, *interface, request.gate); !room) return room.error();
  auto region = shim::Region::map(std::move(fds[0]), *std::move(layout));
  if (!region) return region.error();
  ServedParts parts;
  parts.id = bindings.next_id();
  parts.nonce = request.nonce;
  parts.client = request.client;
  parts.told = told;
  parts.principal = std::move(request.principal);
  parts.region = *std::move(region);
  parts.client_pidfd = std::move(fds[1]);
  parts.bell = std::move(fds[2]);
  parts.gate = request.gate;
  parts.interface = interface;
  const std::uint64_t id = parts.id;
  if (Status added = bindings.add(std::move(parts)); !added) return added.error();
  return id;
}

}  // namespace lrpc::server
