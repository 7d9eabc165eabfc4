#include "declarations.h"

#include "lrpc/stubgen/layout/compile.h"
#include "lrpc/stubgen/layout/xdr_subset.h"

namespace lrpc::sun {
namespace {

Status fit(const stubgen::Interface& interface) {
  const std::string of = "interface " + interface.name + " cannot call a Sun RPC program: ";
  if (interface.callback != nullptr) return Error{Errc::not_supported, of + "it has callbacks, and Sun RPC has none"};
  for (const stubgen::Procedure& procedure : interface.procedures)
    if (const std::string_view why = stubgen::why_not_in_xdr(procedure); !why.empty())
      return Error{Errc::not_supported, of + "procedure " + procedure.name + ": " + std::string(why)};
  return {};
}

Result<std::shared_ptr<const stubgen::Interface>> compile(const std::string& text) {
  stubgen::Diagnostics diagnostics;
  auto interface = stubgen::compile({"declaration", text}, diagnostics, stubgen::Origin::server);
  // Only the canonical text ensures that both sides lay out values alike.
  if (!interface || interface->canonical != text)
    return Error{Errc::interface_mismatch, "the declaration of the interface makes no sense to this lrpc-netd"};
  if (Status fits = fit(*interface); !fits) return fits.error();
  return std::make_shared<const stubgen::Interface>(*std::move(interface));
}

}  // namespace

Result<std::shared_ptr<const stubgen::Interface>> Declarations::compiled(uid_t user, const std::string& text) {
  const Key key{user, text};
  {
    std::unique_lock lock(mutex_);
    compiled_.wait(lock, [&] { return !compiling_.contains(user); });
    if (const auto found = known_.find(key); found != known_.end())
      if (auto interface = found->second.interface.lock()) return interface;
    // Drops the texts whose result nobody holds any more, except those that are being compiled.
    std::erase_if(known_, [&](const auto& one) {
      return one.second.interface.expired() && !compiling_.contains(one.first.first);
    });
    auto part = bytes_.take_within(most_ / 2, user, text.size(), most_);
    if (!part) return Error{Errc::limit_reached, "this user has as many declarations for Sun RPC as one user may have"};
    known_[key].part = std::move(part);
    compiling_.insert(user);
  }
  /// Its destructor lets the next text be compiled, and forgets this one if it failed.
  struct Compiling {
    Declarations& all;
    const Key& key;
    std::weak_ptr<const stubgen::Interface> made;
    ~Compiling() {
      const std::lock_guard lock(all.mutex_);
      all.compiling_.erase(key.first);
      const auto entry = all.known_.find(key);
      if (made.expired()) {
        all.known_.erase(entry);
      } else {
        entry->second.interface = std::move(made);
      }
      all.compiled_.notify_all();
    }
  } compiling{*this, key, {}};
  auto interface = compile(text);
  if (interface) compiling.made = *interface;
  return interface;
}

}  // namespace lrpc::sun
