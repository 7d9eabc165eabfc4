// A name that a server exports, whether a nameserver has it just now or not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "call/served_binding.h"

namespace lrpc::server {

/// What the program is to be told (ExportOptions::on_registration) when no lock is held.
struct RegistrationNews {
  std::shared_ptr<ServedInterface> interface;
  Status status;
};
void tell(const std::vector<RegistrationNews>& news) noexcept;
/// With its text, if there is memory for that.
[[nodiscard]] Error copy_of(const Error& error) noexcept;

/// Its states, from the first request until it is withdrawn. Pure: the clerk asks nameservers. `news` has room for
/// one more: a change is told once, however often it happens.
class ExportedName {
 public:
  ExportedName(std::string name, std::shared_ptr<ServedInterface> interface) noexcept
      : name_(std::move(name)), interface_(std::move(interface)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::shared_ptr<ServedInterface>& interface() const noexcept { return interface_; }
  /// The program has been, or is being, given its id: from now on it comes back by itself.
  [[nodiscard]] bool established() const noexcept { return established_; }
  /// Its id at the nameserver that has it now; 0: none has it.
  [[nodiscard]] std::uint64_t registered() const noexcept { return registered_; }
  [[nodiscard]] bool missing() const noexcept { return established_ && registered_ == 0; }
  [[nodiscard]] bool under_way() const noexcept { return established_ && asked_; }
  [[nodiscard]] bool to_be_asked_for() const noexcept { return missing() && !asked_ && !refused_; }

  void asked() noexcept { asked_ = true; }
  void ask_again() noexcept { refused_ = false; }  ///< After a refusal.
  void granted(std::uint64_t id, std::vector<RegistrationNews>& news) noexcept;
  void refused(Error why, std::vector<RegistrationNews>& news) noexcept;
  /// The nameserver has hung up. Of an established one. True: it had the name.
  bool lost(const Error& why, std::vector<RegistrationNews>& news) noexcept;

 private:
  void change(Error why, std::vector<RegistrationNews>& news) noexcept;

  std::string name_;
  std::shared_ptr<ServedInterface> interface_;
  bool established_ = false;
  bool asked_ = false;    ///< The nameserver has been asked and has not answered.
  bool refused_ = false;  ///< It has refused; it is asked again after the pause.
  std::uint64_t registered_ = 0;
  Errc told_ = Errc::ok;  ///< The last that on_registration heard of it.
};

}  // namespace lrpc::server
