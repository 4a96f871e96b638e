#include "lock/simulation/sim_server.hpp"

namespace sluice::simulation {

SimServer::SimServer(VirtualClock& clock, Journal& journal, const Mutation& mutation,
                     std::function<void()> after_step)
    : clock_(clock),
      journal_(journal),
      after_step_(std::move(after_step)),
      scripts_(mutation),
      engine_(engine::open_embedded({.clock = &clock})) {}

std::vector<Value> SimServer::execute(const Batch& batch) {
  Batch own;
  for (const auto& item : batch.items()) {
    const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
    const Words all{words};
    if (item.script) {
      own.add(scripts_.of(*item.script), all.first(item.key_count), all.subspan(item.key_count));
    } else {
      own.add(all);
    }
  }
  auto replies = engine_->run(own).get();
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& item = batch.items()[i];
    if (item.script || item.words.front() != "INFO") continue;
    auto& text = replies[i].as_text();  // a restarted server has another run id
    if (const auto at = text.find("run_id:"); at != std::string::npos)
      text.insert(at + std::string_view{"run_id:"}.size(), fmt::format("{}-", life_));
  }
  write_down(batch, replies);
  after_step_();
  return replies;
}

void SimServer::write_down(const Batch& batch, const std::vector<Value>& replies) {
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& item = batch.items()[i];
    std::string_view request;  // of whom: the first word that is a request id
    if (item.script)
      for (const auto& word : item.words)
        if (word.size() > 33 && word[32] == '-' && request.empty())
          request = std::string_view{word}.substr(0, word.find(' '));
    journal_.note("server: {} {} -> {}", item.script ? item.script->name : item.words.front(),
                  request.size() > 33 ? request.substr(32) : request, to_string(replies[i]));
  }
}

Value SimServer::look(std::initializer_list<std::string_view> command) {
  return engine_->run(command).get();
}

void SimServer::go_down(bool forgets) {
  journal_.note("server: restarts {} its data", forgets ? "without" : "with");
  up_ = false;
  ++life_;
  if (!forgets) return;
  look({"FLUSHALL"});
  first_life_of_data_ = life_;
  forgot_at_ = clock_.wall();
  forgot_at_steady_ = clock_.steady();
}

void SimServer::come_back() {
  journal_.note("server: is back");
  up_ = true;
}

}  // namespace sluice::simulation
